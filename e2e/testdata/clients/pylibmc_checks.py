"""pylibmc, that is libmemcached, in its text protocol, or with a third argument "binary" in that."""
import sys
import pylibmc

host, port = sys.argv[1], sys.argv[2]
server = "%s:%s" % (host, port)


def client(**behaviors):
    c = pylibmc.Client([server], binary=sys.argv[3:] == ["binary"])
    if behaviors:
        c.behaviors.update(behaviors)
    return c


def check(name, fn):
    mc = client()
    mc.flush_all()
    try:
        fn(mc)
        print("PASS", name)
    except Exception as e:
        print("FAIL %s: %s %s" % (name, type(e).__name__, e))


def eq(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def raises(kind, fn):
    try:
        got = fn()
    except kind:
        return
    raise AssertionError("no %s but %r" % (kind.__name__, got))


def set_get(mc):
    eq(mc.set("a", "hello"), True)
    eq(mc.get("a"), "hello")
    eq(mc.get("none"), None)


def types(mc):
    for value in ("", "text", b"bytes", 0, 2 ** 40, True, False, None, 1.5, [1, {"a": 2}]):
        mc.set("t", value)
        eq(mc.get("t"), value)


def big_value(mc):
    value = b"x" * 1000000
    eq(mc.set("big", value), True)
    eq(mc.get("big"), value)


def too_big(mc):
    mc.set("big", b"old")
    raises(pylibmc.Error, lambda: mc.set("big", b"x" * 1100000))
    eq(mc.get("big"), None)
    eq(mc.set("after", "ok"), True)


def compressed(mc):
    value = "abc" * 100000
    eq(mc.set("z", value, min_compress_len=1000), True)
    eq(mc.get("z"), value)


def add_replace(mc):
    eq(mc.replace("a", 1), False)
    eq(mc.add("a", 1), True)
    eq(mc.add("a", 2), False)
    eq(mc.replace("a", 3), True)
    eq(mc.get("a"), 3)


def append_prepend(mc):
    eq(mc.append("a", "x"), False)
    mc.set("a", "m")
    eq(mc.append("a", "r"), True)
    eq(mc.prepend("a", "l"), True)
    eq(mc.get("a"), "lmr")


def delete(mc):
    mc.set("a", 1)
    eq(mc.delete("a"), True)
    eq(mc.delete("a"), False)


def counters(mc):
    mc.set("n", 5)
    eq(mc.incr("n"), 6)
    eq(mc.incr("n", 10), 16)
    eq(mc.decr("n", 20), 0)
    raises(pylibmc.NotFound, lambda: mc.incr("none"))


def incr_on_text(mc):
    mc.set("t", "abc")
    raises(pylibmc.Error, lambda: mc.incr("t"))
    eq(mc.get("t"), "abc")


def cas(mc):
    mc = client(cas=True)
    mc.set("c", 1)
    value, token = mc.gets("c")
    eq(value, 1)
    eq(mc.cas("c", 2, token), True)
    eq(mc.cas("c", 3, token), False)
    eq(mc.get("c"), 2)


def multi(mc):
    many = {"k%d" % i: "v%d" % i for i in range(500)}
    eq(mc.set_multi(many), [])
    eq(mc.get_multi(list(many) + ["no%d" % i for i in range(50)]), many)
    eq(mc.delete_multi(list(many)), True)
    eq(mc.get_multi(list(many)), {})


def multi_big_values(mc):
    many = {"b%d" % i: bytes([65 + i]) * 200000 for i in range(20)}
    eq(mc.set_multi(many), [])
    eq(mc.get_multi(list(many)), many)


def multi_prefix(mc):
    eq(mc.set_multi({"a": 1, "b": 2}, key_prefix="p:"), [])
    eq(mc.get_multi(["a", "b", "c"], key_prefix="p:"), {"a": 1, "b": 2})
    eq(mc.get("p:a"), 1)


def touch(mc):
    mc.set("a", 1)
    eq(mc.touch("a", 1000), True)
    eq(mc.touch("none", 1000), False)


def expiry(mc):
    eq(mc.set("a", 1, time=1000), True)
    eq(mc.get("a"), 1)


def long_key(mc):
    eq(mc.set("k" * 250, 1), True)
    eq(mc.get("k" * 250), 1)
    raises(ValueError, lambda: mc.set("k" * 251, 1))
    eq(mc.get("k" * 250), 1)


def exists(mc):
    eq("a" in mc, False)
    mc["a"] = 7
    eq("a" in mc, True)
    eq(mc["a"], 7)
    del mc["a"]
    eq("a" in mc, False)


def stats(mc):
    [(name, values)] = mc.get_stats()
    for wanted in ("pid", "uptime", "version", "curr_items", "cmd_get", "bytes", "limit_maxbytes"):
        if wanted not in values:
            raise AssertionError("no %s in stats" % wanted)
    eq(len(values["version"].split(b".")), 3)


def stats_settings(mc):
    mc.get_stats("settings")
    mc.get_stats("items")
    mc.set("a", 1)
    eq(mc.get("a"), 1)


def noreply(mc):
    mc = client(_noreply=True, no_block=True)
    mc.set("a", 1)
    if sys.argv[3:] != ["binary"]:  # there the miss is told, and taken for the next answer
        mc.delete("none")
    eq(mc.get("a"), 1)


def buffered(mc):
    mc = client(buffer_requests=True)
    for i in range(200):
        try:
            mc.set("q%d" % i, i)
        except pylibmc.Error as e:  # this library reports "buffered" as an error
            if "error 32" not in str(e):
                raise
    eq(mc.get("q199"), 199)
    eq(client().get("q0"), 0)


def no_block(mc):
    mc = client(no_block=True, tcp_nodelay=True)
    eq(mc.set("a", "x" * 500000), True)
    eq(mc.get("a"), "x" * 500000)


def ketama(mc):
    mc = client(ketama=True)
    eq(mc.set("a", 1), True)
    eq(mc.get("a"), 1)


def flush(mc):
    for i in range(30):
        mc.set("f%d" % i, i)
    eq(mc.flush_all(), True)
    eq(mc.get_multi(["f%d" % i for i in range(30)]), {})


def many_clients(mc):
    clients = [client() for _ in range(50)]
    for i, c in enumerate(clients):
        eq(c.set("mc%d" % i, i), True)
    for i, c in enumerate(reversed(clients)):
        eq(c.get("mc%d" % i), i)


for check_name, check_fn in sorted(list(globals().items())):
    if callable(check_fn) and getattr(check_fn, "__module__", "") == "__main__" and check_name not in ("client", "check", "eq", "raises"):
        check(check_name, check_fn)
