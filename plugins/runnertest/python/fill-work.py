import sys

done = 0
try:
    while done < int(sys.argv[2]):
        with open("work/%05d" % done, "wb") as f:
            f.write(bytes(64 << 10))
        done += 1
except OSError:
    pass
print(done)
