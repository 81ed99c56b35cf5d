from alembert.cli import main

main()
