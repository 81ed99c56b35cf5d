"""An arm in real time, and a second process in the place of the board that controls it.

    python 09_hardware_in_the_loop.py

The bench simulates the arm a thousand times a second and sends its state by UDP. The board knows nothing of Alembert: it
takes apart the packets that `alembert.deploy.loop` describes, with Python's standard library, computes a PID law and sends
torques back. A board of yours does the same in C, with the law that `al.deploy.c_controller` writes.
"""

import subprocess
import sys

import numpy as np

import alembert as al

TARGET = (0.5, -0.2)  # rad
BOARD = """
import socket, struct, sys
HEADER = struct.Struct("<4sHHQd")  # "ALMB", version, kind (1 state, 2 command), number, time
port, target, gains = int(sys.argv[1]), [float(x) for x in sys.argv[2:4]], (120.0, 30.0, 150.0)
board = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
board.settimeout(0.5)
torque, summed, before, heard = [0.0, 0.0], [0.0, 0.0], 0.0, 0
while True:
    board.sendto(HEADER.pack(b"ALMB", 1, 2, heard, before) + struct.pack("<2d", *torque), ("127.0.0.1", port))
    try:
        packet = board.recv(65536)
    except TimeoutError:
        if heard:
            break  # the bench has ended
        continue
    magic, version, kind, number, t = HEADER.unpack_from(packet)
    q1, q2, v1, v2 = struct.unpack_from("<4d", packet, HEADER.size)
    off = [a - b for a, b in zip(target, (q1, q2))]
    summed = [s + e * (t - before) for s, e in zip(summed, off)]
    torque = [gains[0] * e - gains[1] * v + gains[2] * s for e, v, s in zip(off, (v1, v2), summed)]
    heard, before = number, t
print(f"the board: last state number {heard}, at {before:.3f} s")
"""

if __name__ == "__main__":
    arm = al.library.two_link()
    link = al.deploy.UdpLink()  # on this machine, at a free port
    board = subprocess.Popen([sys.executable, "-c", BOARD, str(link.address[1]), *map(str, TARGET)])
    try:
        report = al.realtime(arm, duration=3.0, rate=1000, link=link, q0=[-1.2, 0.0])
        board.wait(30)
    finally:
        board.kill()
        link.close()
    print(report)
    print(report.histogram())
    print(f"{np.degrees(np.abs(report.q - TARGET)).max():.2f} deg from the target")
