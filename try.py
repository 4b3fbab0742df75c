import sys, time, cProfile, pstats
from benchmarks.month.plan import month
from benchmarks.month.ways import WAYS
from benchmarks.month.world import World
m = month(1, hosts=int(sys.argv[2]), days=int(sys.argv[3]))
print(len(m.leases), len(m.servers))
import tempfile
w = World(m, WAYS[sys.argv[1]], 'sqlite:///'+tempfile.mkdtemp()+'/l.db', print)
t = time.process_time()
p = cProfile.Profile(time.process_time)
if len(sys.argv) > 4: p.enable()
f = w.live()
p.disable()
print(time.process_time()-t)
j = f.as_json(); j.pop("hours"); print(j, f.set_aside/f.capacity, f.leased/f.capacity)
if len(sys.argv) > 4: pstats.Stats(p).sort_stats("tottime").print_stats(25); pstats.Stats(p).sort_stats("cumtime").print_stats(70)
