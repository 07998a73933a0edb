"""A server that answers nothing and does not end by itself: `silent.py PID_FILE`. It imports little, so that it is there at once."""

import os
import sys
import time
from pathlib import Path

Path(sys.argv[1]).write_text(str(os.getpid()), encoding="utf-8")
time.sleep(600)
