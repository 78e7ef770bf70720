"""A program in place of `hornbeam update`: it tells of its progress and goes on until it is asked to stop."""

STOPS_IN_ORDER = """
import json, signal, sys, time
file = open(sys.argv[sys.argv.index("--progress-file") + 1], "a")
spent = {"elapsed_s": 12.5, "tokens": {"calls": 4, "prompt": 2000, "cached": 900, "output": 300},
         "cost": {"total": 0.0125, "currency": "EUR"}}
def tell(**line):
    print(json.dumps({"time": time.time(), **spent, **line}), file=file, flush=True)
def stop(*_):
    tell(end="stopped", message="interrupted: 5 chunks were extracted in this run")
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
tell(stage="read", unit="documents", total=None, done=2, rate=4.0, left_s=None, ended=True, seconds=0.5)
done = 0
while True:
    tell(stage="extract", unit="chunks", total=10, done=min(5, done := done + 1), rate=2.0, left_s=2.5)
    time.sleep(0.02)
"""
