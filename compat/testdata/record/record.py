#!/usr/bin/python3
"""Records where real programs place the 1,000 keys: nutcracker, libmemcached (by pylibmc), nginx, memcached's proxy, and mcrouter's hash function.

    apt-get install memcached nutcracker python3-pylibmc nginx
    ./record.py [--mcrouter SOURCES [--folly SOURCES]] [--memcached-proxy FILE] [NAME...]        # all recordings, or those named, into the folder above

Every key is stored once through the program and then looked for on every server; a key found on none or on two ends the run.
For nginx the address it would pass the request to is taken. The recording's name says what was configured; ../README.md explains the parts.
Ports 31211-31214 and 31301-31325 of 127.0.0.1 and 11211 of 127.0.0.2-5 must be free.
"""
import contextlib, csv, ctypes, os, socket, subprocess, sys, tempfile, time, urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.dirname(HERE)
KEYS = [row[0] for row in csv.reader(open(os.path.join(DATA, "twemproxy_ketama_fnv1a_64.csv"), encoding="utf-8"))][1:]
PROXY_PORT = 31400
NAMES = ["zz", "b", "aaa", "c"]
FRACTIONS = [0.25, 1.0, 0.5, 0.9]


def servers_of(name):
    if "_turned" in name:
        return servers_of(name.replace("_turned", ""))[::-1]
    if "25servers" in name:
        return ["127.0.0.1:%d" % (31301 + i) for i in range(25)]
    if "unix" in name:
        return ["/tmp/cacherouter-%d.sock" % i for i in range(4)]
    if "port11211" in name:
        return ["127.0.0.%d:11211" % (2 + i) for i in range(4)]
    return ["127.0.0.1:%d" % (31211 + i) for i in range(4)]


def weights_of(name, count):
    return [1, 2, 3, 10] if "_w1-2-3-10" in name else [1] * count


def connect(addr):
    if addr.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(addr)
        return s
    host, port = addr.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=5)


def wait_for(addr, process):
    for _ in range(500):
        if process.poll() is not None:
            sys.exit("%s ended with %d" % (process.args[0], process.returncode))
        with contextlib.suppress(OSError):
            return connect(addr).close()
        time.sleep(0.01)
    sys.exit("nothing listens on " + addr)


@contextlib.contextmanager
def running(args, *addrs):
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for addr in addrs:
            wait_for(addr, process)
        yield process
    finally:
        process.terminate()
        process.wait()


def memcached(addr):
    if addr.startswith("/"):
        return running(["memcached", "-u", "nobody", "-m", "16", "-s", addr, "-a", "777"], addr)
    host, port = addr.rsplit(":", 1)
    return running(["memcached", "-u", "nobody", "-m", "16", "-U", "0", "-l", host, "-p", port], addr)


def store(addr, value):
    """Stores every key with the value by the text protocol."""
    with connect(addr) as s, s.makefile("rwb") as f:
        for key in KEYS:
            f.write(b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value))
            f.flush()
            if (reply := f.readline()) != b"STORED\r\n":
                sys.exit("%r: %r" % (key, reply))


def holders(servers, value):
    """Returns the position of the one server that holds the value under each key."""
    found = {}
    for i, addr in enumerate(servers):
        with connect(addr) as s, s.makefile("rwb") as f:
            for key in KEYS:
                f.write(b"get %s\r\n" % key.encode())
                f.flush()
                while (line := f.readline()) != b"END\r\n":
                    if line == value + b"\r\n" and found.setdefault(key, i) != i:
                        sys.exit("%r is on two servers" % key)
    return [found[key] for key in KEYS]


def nutcracker(name, servers, value):
    _, distribution, rest = name.split("_", 2)
    hashes = ["one_at_a_time", "md5", "crc16", "crc32a", "crc32", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"]
    lines = ["pool:", "  listen: 127.0.0.1:%d" % PROXY_PORT, "  distribution: " + distribution, "  timeout: 5000",
             "  hash: " + next(h for h in hashes if rest.startswith(h))]
    if "hashtag" in name:
        lines.append('  hash_tag: "{}"')
    lines.append("  servers:")
    for i, (addr, weight) in enumerate(zip(servers, weights_of(name, len(servers)))):
        lines.append("   - %s:%d%s" % (addr, weight, " " + NAMES[i] if "oddnames" in name else " server%d" % (i + 1) if "named" in name else ""))
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        listen = "127.0.0.1:%d" % PROXY_PORT
        with running(["nutcracker", "-c", f.name, "-s", str(PROXY_PORT + 1)], listen):
            store(listen, value)
    return holders(servers, value)


def libmemcached(name, servers, value):
    import pylibmc
    behaviors = {}
    if "unweighted" in name:
        behaviors["ketama"] = True
    elif "weighted" in name:
        behaviors["ketama_weighted"] = True
    elif "spy" in name:
        behaviors["distribution"] = "consistent ketama spy"
    elif "consistent" in name:
        behaviors["distribution"] = "consistent"
    for h in ["md5", "crc", "fnv1_32", "fnv1_64", "fnv1a_32", "fnv1a_64", "hsieh", "murmur", "jenkins"]:
        if "_" + h + "_" in name + "_":
            behaviors["hash"] = h
    weights = weights_of(name, len(servers))
    specs = servers if "unix" in name else ["%s:%d" % sw for sw in zip(servers, weights)]
    client = pylibmc.Client(specs, behaviors=behaviors)
    for key in KEYS:
        client.set(key.encode(), value)
    return holders(servers, value)


def nginx(name, servers, value):
    weights = weights_of(name, len(servers))
    upstream = "\n".join("    server %s weight=%d;" % sw for sw in zip(servers, weights))
    conf = """daemon off; pid %(dir)s/pid; error_log stderr; events {}
http { access_log off; large_client_header_buffers 4 16k; upstream u { hash $http_x_key consistent;
%(upstream)s
  }
  client_body_temp_path %(dir)s/a; proxy_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/c; uwsgi_temp_path %(dir)s/d; scgi_temp_path %(dir)s/e;
  server { listen 127.0.0.1:%(port)d; location / { set $memcached_key $http_x_key; memcached_pass u; add_header X-Upstream $upstream_addr always; } } }
"""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "nginx.conf")
        with open(path, "w") as f:
            f.write(conf % {"dir": d, "upstream": upstream, "port": PROXY_PORT})
        listen = "127.0.0.1:%d" % PROXY_PORT
        with running(["nginx", "-c", path, "-p", d], listen):
            return [servers.index(nginx_upstream(listen, key)) for key in KEYS]


def nginx_upstream(listen, key):
    with connect(listen) as s, s.makefile("rwb") as f:
        f.write(b"GET / HTTP/1.0\r\nX-Key: %s\r\n\r\n" % key.encode())
        f.flush()
        for line in f:
            if line.lower().startswith(b"x-upstream: "):
                return line.split()[1].decode()
    sys.exit("nginx names no upstream for %r" % key)


def mcrouter(name, servers, value):
    """Calls mcrouter's own furc_hash or crc32_hash, compiled from its mcrouter/lib/fbi/hash.c. A salt stands behind the key.
    WeightedCh3 is those and folly's SpookyHashV2, put together as in mcrouter/lib/WeightedCh3HashFunc.cpp."""
    weighted = "weighted" in name
    if not MCROUTER or weighted and not FOLLY:
        return None
    with tempfile.TemporaryDirectory() as d:
        lib = os.path.join(d, "hash.so")
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-I", MCROUTER, "-o", lib, MCROUTER + "/mcrouter/lib/fbi/hash.c"], check=True)
        furc, crc = ctypes.CDLL(lib).furc_hash, ctypes.CDLL(lib).crc32_hash
        furc.restype = crc.restype = ctypes.c_uint32
        keys = [k.encode() + (b"foo" if "salt_foo" in name else b"") for k in KEYS]
        if weighted:
            spooky = spooky_hash(d)

            def place(key):
                salted = key
                for retry in range(32):
                    i = furc(salted, ctypes.c_size_t(len(salted)), ctypes.c_uint32(len(servers)))
                    if spooky(salted, len(salted)) < int(FRACTIONS[i] * 0xffffffff):
                        break
                    salted = key + str(retry)[::-1].encode()
                return i
            return [place(k) for k in keys]
        if "crc32" in name:
            return [(crc(k, ctypes.c_size_t(len(k))) & 0x7fffffff) % len(servers) for k in keys]
        return [furc(k, ctypes.c_size_t(len(k)), ctypes.c_uint32(len(servers))) for k in keys]


def spooky_hash(folder):
    """Compiles folly's SpookyHashV2, with nothing of folly around it."""
    source, lib = os.path.join(folder, "spooky.cpp"), os.path.join(folder, "spooky.so")
    os.makedirs(os.path.join(folder, "folly", "lang"))
    for header in "Portability.h", "CPortability.h", "lang/CString.h":
        with open(os.path.join(folder, "folly", header), "w") as f:
            f.write("#ifndef STUB\n#define STUB\n#include <cassert>\n#include <cstring>\nstatic constexpr bool kHasUnalignedAccess = true;\n#endif\n"
                    "#define FOLLY_ALWAYS_INLINE inline\n#define FOLLY_BUILTIN_MEMCPY memcpy\n")
    with open(source, "w") as f:
        f.write('#include "%s/folly/hash/SpookyHashV2.cpp"\n' % FOLLY)
        f.write('extern "C" unsigned spooky(const char *key, unsigned long n) { return folly::hash::SpookyHashV2::Hash32(key, n, 0xface2014); }\n')
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-I", folder, "-I", FOLLY, "-o", lib, source], check=True)
    hashing = ctypes.CDLL(lib).spooky
    hashing.restype, hashing.argtypes = ctypes.c_uint32, [ctypes.c_char_p, ctypes.c_ulong]
    return hashing


def mcproxy(name, servers, value):
    """Stores through the proxy inside memcached, of a binary built with --enable-proxy."""
    if not PROXY:
        return None
    options = []
    words = name.split("_")
    if words[1] == "ring":
        options.append("dist=mcp.dist_ring_hash")
        if words[2] != "default":
            options.append('omode="%s"' % words[2])
    if "md5" in words:
        options.append("hash=mcp.dist_ring_hash.hash")
    if "seed_foo" in name:
        options.append('seed="foo"')
    if "tags" in name:
        options.append('filter="tags", filter_conf="{}"')
    if "stop" in name:
        options.append('filter="stop", filter_conf="::"')
    backends = ", ".join('mcp.backend("b%d", "%s", %s)' % (i, *a.rsplit(":", 1)) for i, a in enumerate(servers))
    lua = """
function mcp_config_pools() return mcp.pool({ %s }, { %s }) end
function mcp_config_routes(pool)
    local f = mcp.funcgen_new()
    local child = f:new_handle(pool)
    f:ready({ n = "all", f = function(rctx) return function(r) return rctx:enqueue_and_wait(r, child) end end })
    mcp.attach(mcp.CMD_ANY_STORAGE, f)
end
""" % (backends, ", ".join(options))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as f:
        f.write(lua)
        f.flush()
        os.chmod(f.name, 0o644)
        listen = "127.0.0.1:%d" % PROXY_PORT
        with running([PROXY, "-u", "nobody", "-l", "127.0.0.1", "-p", str(PROXY_PORT), "-U", "0", "-t", "1", "-o", "proxy_config=" + f.name], listen):
            store(listen, value)
    return holders(servers, value)


ALL = """
twemproxy_ketama_crc16 twemproxy_ketama_murmur twemproxy_ketama_fnv1a_64_named_w1-2-3-10 twemproxy_ketama_md5_w1-2-3-10
twemproxy_ketama_md5_port11211_w1-2-3-10 twemproxy_ketama_md5_25servers twemproxy_ketama_fnv1a_64_unix twemproxy_ketama_md5_unix
twemproxy_modula_fnv1a_64_w1-2-3-10 twemproxy_modula_fnv1a_64_w1-2-3-10_turned twemproxy_modula_md5_w1-2-3-10_oddnames
twemproxy_modula_crc16 twemproxy_modula_murmur twemproxy_modula_md5_hashtag
libmemcached_ketama_weighted_25servers libmemcached_ketama_weighted_fnv1a_64_w1-2-3-10 libmemcached_ketama_weighted_port11211_w1-2-3-10
libmemcached_ketama_unweighted_port11211_w1-2-3-10 libmemcached_ketama_unweighted_25servers libmemcached_ketama_unweighted_murmur
libmemcached_ketama_unweighted_jenkins libmemcached_ketama_unweighted_fnv1_64 libmemcached_ketama_unweighted_fnv1a_64
libmemcached_ketama_unweighted_fnv1_32 libmemcached_ketama_unweighted_fnv1a_32 libmemcached_ketama_unweighted_crc
libmemcached_ketama_spy_md5_w1-2-3-10 libmemcached_ketama_weighted_unix libmemcached_ketama_unweighted_unix libmemcached_consistent_md5_w1-2-3-10 libmemcached_modula_md5 libmemcached_modula_fnv1a_64_w1-2-3-10
nginx_hash_consistent_w1-2-3-10 nginx_hash_consistent_port11211 nginx_hash_consistent_25servers
mcrouter_ch3 mcrouter_ch3_25servers mcrouter_ch3_salt_foo mcrouter_crc32 mcrouter_crc32_25servers
mcrouter_weighted-ch3_fractions mcrouter_weighted-ch3_fractions_salt_foo
mcproxy_jump_xxh3_seed_foo mcproxy_jump_xxh3_25servers mcproxy_ring_evcache_md5 mcproxy_ring_evcache_xxh3 mcproxy_ring_ketama_md5_port11211
mcproxy_ring_default_xxh3_seed_foo mcproxy_ring_ketama_md5_25servers
""".split()

PROGRAMS = {"twemproxy": nutcracker, "libmemcached": libmemcached, "nginx": nginx, "mcrouter": mcrouter, "mcproxy": mcproxy}


def record(name):
    servers = servers_of(name)
    with contextlib.ExitStack() as stack:
        for addr in servers:
            stack.enter_context(memcached(addr))
        homes = PROGRAMS[name.split("_")[0]](name, servers, b"value-of-" + name.encode())
    if homes is None:
        print("not recorded:", name)
        return
    with open(os.path.join(DATA, name + ".csv"), "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["key", "server_index", "server"])
        out.writerows((key, i, servers[i]) for key, i in zip(KEYS, homes))
    print("recorded", name, [homes.count(i) for i in range(len(servers))], flush=True)


MCROUTER = FOLLY = PROXY = None
names = sys.argv[1:]
while names and names[0].startswith("--"):
    if names[0] == "--mcrouter":
        MCROUTER = names[1]
    elif names[0] == "--folly":
        FOLLY = names[1]
    elif names[0] == "--memcached-proxy":
        PROXY = names[1]
    else:
        sys.exit("unknown option " + names[0])
    names = names[2:]
for n in names or ALL:
    record(n)
