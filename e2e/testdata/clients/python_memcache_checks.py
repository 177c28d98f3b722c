"""python3-memcache, the pure Python client."""
import sys
import memcache

server = "%s:%s" % (sys.argv[1], sys.argv[2])


def client(**kw):
    return memcache.Client([server], **kw)


def check(name, fn):
    mc = client()
    mc.flush_all()
    try:
        fn(mc)
        print("PASS", name)
    except Exception as e:
        print("FAIL %s: %s %s" % (name, type(e).__name__, e))
    mc.disconnect_all()


def eq(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def set_get(mc):
    eq(mc.set("a", "hello"), True)
    eq(mc.get("a"), "hello")
    eq(mc.get("none"), None)


def types(mc):
    for value in ("", "text", b"bytes", 0, 2 ** 40, True, 1.5, [1, {"a": 2}]):
        mc.set("t", value)
        eq(mc.get("t"), value)


def delete_with_zero(mc):
    mc.set("a", 1)
    eq(mc.delete("a", 0), 1)
    eq(mc.delete("a"), 1)  # this client counts NOT_FOUND as deleted
    eq(mc.get("a"), None)


def delete_noreply(mc):
    mc.set("a", 1)
    mc.delete("a", noreply=True)
    eq(mc.get("a"), None)


def set_noreply(mc):
    mc.set("a", 1, noreply=True)
    mc.set("b", 2, noreply=True)
    eq(mc.get_multi(["a", "b", "c"]), {"a": 1, "b": 2})


def add_replace(mc):
    eq(mc.replace("a", 1), 0)
    eq(mc.add("a", 1), True)
    eq(mc.add("a", 2), 0)
    eq(mc.replace("a", 3), True)
    eq(mc.get("a"), 3)


def append_prepend(mc):
    mc.set("a", "m")
    eq(mc.append("a", "r"), True)
    eq(mc.prepend("a", "l"), True)
    eq(mc.get("a"), "lmr")


def counters(mc):
    mc.set("n", "5")
    eq(mc.incr("n"), 6)
    eq(mc.incr("n", 10), 16)
    eq(mc.decr("n", 20), 0)
    eq(mc.incr("none"), None)


def cas(mc):
    mc = client(cache_cas=True)
    mc.set("c", 1)
    eq(mc.gets("c"), 1)
    eq(mc.cas("c", 2), True)
    client().set("c", 3)
    eq(mc.gets("c"), 3)
    client().set("c", 4)
    eq(mc.cas("c", 5), 0)
    eq(mc.get("c"), 4)


def multi(mc):
    many = {"k%d" % i: "v%d" % i for i in range(300)}
    eq(mc.set_multi(many), [])
    eq(mc.get_multi(list(many) + ["none"]), many)
    eq(mc.delete_multi(list(many)), 1)
    eq(mc.get_multi(list(many)), {})


def multi_noreply(mc):
    many = {"k%d" % i: i for i in range(100)}
    mc.set_multi(many, noreply=True)
    eq(mc.get_multi(list(many)), many)


def touch(mc):
    mc.set("a", 1)
    eq(mc.touch("a", 1000), 1)


def big_value(mc):
    value = "y" * 900000
    eq(mc.set("big", value), True)
    eq(mc.get("big"), value)


def server_refuses_big_value(mc):
    mc = client(server_max_value_length=4 << 20)
    mc.set("big", "old")
    eq(mc.set("big", "y" * 1200000), False)
    eq(mc.get("big"), None)
    eq(mc.set("after", 1), True)
    eq(mc.get("after"), 1)


def long_key(mc):
    key = "k" * 250
    eq(mc.set(key, 1), True)
    eq(mc.get(key), 1)


def long_key_unchecked(mc):
    mc = client(check_keys=False)
    eq(mc.get("k" * 251), None)
    eq(mc.set("a", 1), True)
    eq(mc.get("a"), 1)


def stats(mc):
    [(name, values)] = mc.get_stats()
    for wanted in ("pid", "uptime", "version", "curr_items"):
        if wanted not in values:
            raise AssertionError("no %s" % wanted)


def stats_settings(mc):
    [(name, values)] = mc.get_stats("settings")
    mc.set("a", 1)
    eq(mc.get("a"), 1)


def flush(mc):
    for i in range(30):
        mc.set("f%d" % i, i)
    mc.flush_all()
    eq(mc.get_multi(["f%d" % i for i in range(30)]), {})


for check_name, check_fn in sorted(list(globals().items())):
    if callable(check_fn) and getattr(check_fn, "__module__", "") == "__main__" and check_name not in ("client", "check", "eq"):
        check(check_name, check_fn)
