# No attack: a program with more than half of its memory that starts others, which until they are on their own are two
# names of the same memory.
import subprocess
kept = bytearray(os.urandom(1 << 20)) * 160
for i in range(300):
    subprocess.run(['/bin/sh', '-c', ':'], check=True)
end()
