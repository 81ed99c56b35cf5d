"use strict";
// A page of the live viewer: does what the program asks for, until that has ended.

(function connected() {
  let done = 0;
  function follow(player, wanted) {
    player.pause();
    if (wanted.time !== undefined) { player.seek(wanted.time); return; }
    if (player.x && wanted.x) {
      player.x = Float64Array.from(wanted.x);
      player.write();
    }
    player.stage?.setPoses(wanted.poses);
  }
  const notice = element("p", { className: "notice", role: "status" });
  document.querySelector("h1").after(notice);
  (async function ask() {
    let pause = 50;
    try {
      const wanted = await (await fetch("wanted")).json(), player = window.alembert?.players[0];
      if (player && wanted.number > done) {
        done = wanted.number;
        follow(player, wanted);
      }
      notice.textContent = "";
    } catch {
      notice.textContent = "The program has ended; the picture stays.";
      pause = 2000;
    }
    setTimeout(ask, pause);
  })();
})();
