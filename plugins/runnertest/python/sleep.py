import sys
import time

time.sleep(int(sys.argv[2]) / 1000)
