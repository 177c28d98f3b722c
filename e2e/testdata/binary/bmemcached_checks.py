"""python-binary-memcached, which speaks the binary protocol only."""
import sys
import bmemcached

host, port = sys.argv[1], sys.argv[2]
server = "%s:%s" % (host, port)


def client():
    return bmemcached.Client([server])


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
    for value in ("", "text", b"bytes", 0, 2 ** 40, True, None, 1.5, [1, {"a": 2}]):
        mc.set("t", value)
        eq(mc.get("t"), value)


def add_replace(mc):
    eq(mc.replace("a", 1), False)
    eq(mc.add("a", 1), True)
    eq(mc.add("a", 2), False)
    eq(mc.replace("a", 3), True)
    eq(mc.get("a"), 3)


def delete(mc):
    mc.set("a", 1)
    eq(mc.delete("a"), True)
    eq(mc.get("a"), None)
    mc.delete("a")


def counters(mc):
    eq(mc.incr("n", 1, default=10), 10)
    eq(mc.incr("n", 5), 15)
    eq(mc.decr("n", 20), 0)
    eq(mc.decr("m", 1, default=7), 7)


def cas(mc):
    mc.set("c", 1)
    value, token = mc.gets("c")
    eq(value, 1)
    eq(mc.cas("c", 2, token), True)
    eq(mc.cas("c", 3, token), False)
    eq(mc.get("c"), 2)
    eq(mc.cas("none", 1, token), False)


def get_with_cas(mc):
    mc.set("c", 1)
    value, token = mc.get("c", get_cas=True)
    eq(value, 1)
    eq(mc.delete("c", cas=token), True)


def multi(mc):
    many = {"k%d" % i: "v%d" % i for i in range(300)}
    mc.set_multi(many)
    eq(mc.get_multi(list(many) + ["none"]), many)
    mc.delete_multi(list(many))
    eq(mc.get_multi(list(many)), {})


def multi_cas(mc):
    mc.set_multi({"a": "1", "b": "2"})
    got = mc.get_multi(["a", "b"], get_cas=True)
    eq(sorted((k, v[0]) for k, v in got.items()), [("a", "1"), ("b", "2")])


def set_multi_existing(mc):
    mc.set_multi({"a": "1", "b": "2"})
    mc.set_multi({"a": "3", "c": "4"})
    eq(mc.get_multi(["a", "b", "c"]), {"a": "3", "b": "2", "c": "4"})


def expiry(mc):
    eq(mc.set("a", 1, time=1000), True)
    eq(mc.get("a"), 1)
    eq(mc.set("a", 1, time=2592001), True)
    eq(mc.get("a"), None)


def any_key(mc):
    for key in ("with space", "new\nline", "caf\u00e9", "k" * 250):
        eq(mc.set(key, key), True)
        eq(mc.get(key), key)


def key_too_long(mc):
    try:
        mc.set("k" * 251, 1)
    except Exception:
        pass
    mc = client()
    eq(mc.set("a", 1), True)


def big_value(mc):
    value = "x" * 900000
    eq(mc.set("big", value, compress_level=0), True)
    eq(mc.get("big"), value)


def too_big(mc):
    mc.set("big", "old")
    try:
        mc.set("big", b"x" * 1100000, compress_level=0)
    except bmemcached.exceptions.MemcachedException as e:
        eq(e.code, 3)
    eq(mc.get("big"), None)


def not_a_number(mc):
    mc.set("n", "many")
    try:
        mc.incr("n", 1)
    except bmemcached.exceptions.MemcachedException as e:
        eq(e.code, 6)
    eq(mc.get("n"), "many")


def stats(mc):
    [values] = mc.stats().values()
    for wanted in ("pid", "uptime", "version", "curr_items"):
        if wanted not in values:
            raise AssertionError("no %s" % wanted)


def stats_settings(mc):
    [values] = mc.stats("settings").values()
    if "num_threads" not in values:
        raise AssertionError("no num_threads")


def sasl_where_none_is_wanted(mc):
    mc = bmemcached.Client([server], "user", "secret")
    eq(mc.set("a", 1), True)
    eq(mc.get("a"), 1)


def flush(mc):
    for i in range(30):
        mc.set("f%d" % i, i)
    eq(mc.flush_all(), True)
    eq(mc.get_multi(["f%d" % i for i in range(30)]), {})


def many_clients(mc):
    clients = [client() for _ in range(30)]
    for i, c in enumerate(clients):
        eq(c.set("mc%d" % i, i), True)
    for i, c in enumerate(reversed(clients)):
        eq(c.get("mc%d" % i), i)


for check_name, check_fn in sorted(list(globals().items())):
    if callable(check_fn) and getattr(check_fn, "__module__", "") == "__main__" and check_name not in ("client", "check", "eq"):
        check(check_name, check_fn)
