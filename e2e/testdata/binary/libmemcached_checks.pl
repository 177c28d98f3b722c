# Memcached::libmemcached, the Perl face of libmemcached's own functions, in its binary protocol.
use strict;
use warnings;
use Memcached::libmemcached;

BEGIN { Memcached::libmemcached->import(@Memcached::libmemcached::EXPORT_OK) }

my ($host, $port) = @ARGV;

sub client {
    my $m = memcached_create();
    memcached_behavior_set($m, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    memcached_server_add($m, $host, $port);
    return $m;
}

sub eq_ {
    my ($got, $want) = @_;
    return if !defined $got && !defined $want;
    die sprintf("got %s, want %s\n", $got // 'undef', $want // 'undef')
        if !defined $got || !defined $want || $got ne $want;
}

sub ok { die "$_[1]\n" unless $_[0] }

my %checks = (
    set_get => sub {
        my $m = shift;
        ok(memcached_set($m, 'a', 'hello', 0, 7), 'not set');
        eq_(memcached_get($m, 'a', my $flags, my $rc), 'hello');
        eq_($flags, 7);
        eq_(memcached_get($m, 'none', $flags, $rc), undef);
    },
    add_replace => sub {
        my $m = shift;
        ok(!memcached_replace($m, 'a', 1), 'replaced nothing');
        ok(memcached_add($m, 'a', 1), 'not added');
        ok(!memcached_add($m, 'a', 2), 'added twice');
        ok(memcached_replace($m, 'a', 3), 'not replaced');
        eq_(memcached_get($m, 'a'), 3);
    },
    append_prepend => sub {
        my $m = shift;
        ok(!memcached_append($m, 'a', 'x'), 'appended to nothing');
        memcached_set($m, 'a', 'm');
        ok(memcached_append($m, 'a', 'r'), 'not appended');
        ok(memcached_prepend($m, 'a', 'l'), 'not prepended');
        eq_(memcached_get($m, 'a'), 'lmr');
    },
    delete => sub {
        my $m = shift;
        memcached_set($m, 'a', 1);
        ok(memcached_delete($m, 'a'), 'not deleted');
        ok(!memcached_delete($m, 'a'), 'deleted twice');
    },
    counters => sub {
        my $m = shift;
        memcached_set($m, 'n', 5);
        ok(memcached_increment($m, 'n', 10, my $value = 0), 'not incremented');
        eq_($value, 15);
        ok(memcached_decrement($m, 'n', 20, $value), 'not decremented');
        eq_($value, 0);
        ok(!memcached_increment($m, 'none', 1, $value), 'incremented nothing');
    },
    counters_made => sub {
        my $m = shift;
        ok(memcached_increment_with_initial($m, 'n', 5, 10, 0, my $value = 0), 'not made');
        eq_($value, 10);
        ok(memcached_decrement_with_initial($m, 'n', 3, 10, 0, $value), 'not decremented');
        eq_($value, 7);
    },
    multi => sub {
        my $m = shift;
        my %many = map { ("k$_" => "v$_") } 0 .. 299;
        memcached_set($m, $_, $many{$_}) for keys %many;
        my %got;
        ok(memcached_mget_into_hashref($m, [keys %many, 'none'], \%got), 'no mget');
        eq_(join(',', map { "$_=$got{$_}" } sort keys %got), join(',', map { "$_=$many{$_}" } sort keys %many));
    },
    fetch => sub {
        my $m = shift;
        memcached_set($m, $_, "v$_") for qw(a b);
        ok(memcached_mget($m, [qw(a x b)]), 'no mget');
        my %got;
        while (defined(my $value = memcached_fetch($m, my $key, my $flags, my $rc))) {
            $got{$key} = $value;
        }
        eq_(join(',', map { "$_=$got{$_}" } sort keys %got), 'a=va,b=vb');
    },
    buffered => sub {
        my $m = shift;
        memcached_behavior_set($m, MEMCACHED_BEHAVIOR_NO_BLOCK,       1);
        memcached_behavior_set($m, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
        memcached_set($m, "q$_", $_) for 0 .. 199;
        eq_(memcached_get($m, 'q199'), 199);
        eq_(memcached_get(client(), 'q0'), 0);
    },
    noreply => sub {
        my $m = shift;
        memcached_behavior_set($m, MEMCACHED_BEHAVIOR_NOREPLY, 1);
        memcached_set($m, 'a', 1);
        memcached_set($m, 'b', 1);
        memcached_delete($m, 'b');
        eq_(memcached_get($m, 'a'), 1);
        eq_(memcached_get($m, 'b'), undef);
    },
    expiry => sub {
        my $m = shift;
        memcached_set($m, 'a', 1, 1000);
        eq_(memcached_get($m, 'a'), 1);
        memcached_set($m, 'a', 1, 2592001);
        eq_(memcached_get($m, 'a'), undef);
    },
    keys_of_any_bytes => sub {
        my $m = shift;
        for my $key ('with space', "tab\tand\nline", "\xc3\xa9", 'k' x 249) {
            ok(memcached_set($m, $key, $key), "not set: $key");
            eq_(memcached_get($m, $key), $key);
        }
    },
    big_value => sub {
        my $m = shift;
        my $value = 'x' x 900_000;
        ok(memcached_set($m, 'big', $value), 'not set');
        ok(memcached_get($m, 'big') eq $value, 'another value');
    },
    too_big => sub {
        my $m = shift;
        memcached_set($m, 'big', 'old');
        ok(!memcached_set($m, 'big', 'x' x 1_100_000), 'set');
        eq_(memcached_get(client(), 'big'), undef);
    },
    version => sub {
        my $m = shift;
        ok(scalar(memcached_version($m)), 'no version');
    },
    stats => sub {
        my $m = shift;
        my %stats;
        $m->walk_stats('', sub { $stats{ $_[0] } = $_[1]; return; });
        for my $name (qw(pid uptime version curr_items)) {
            ok(defined $stats{$name}, "no $name");
        }
    },
    verbosity => sub {
        my $m = shift;
        ok(memcached_verbosity($m, 1), 'refused');
    },
    flush => sub {
        my $m = shift;
        memcached_set($m, "f$_", 1) for 0 .. 29;
        ok(memcached_flush($m, 0), 'not flushed');
        eq_(memcached_get($m, "f$_"), undef) for 0, 7, 29;
    },
    quit_and_return => sub {
        my $m = shift;
        memcached_set($m, 'a', 1);
        ok(memcached_quit($m), 'no quit');
        eq_(memcached_get($m, 'a'), 1);
    },
);

for my $name (sort keys %checks) {
    my $m = client();
    memcached_flush($m, 0);
    if (eval { local $SIG{ALRM} = sub { die "no answer\n" }; alarm 10; $checks{$name}->($m); alarm 0; 1 }) {
        print "PASS $name\n";
    } else {
        alarm 0;
        chomp(my $why = $@);
        print "FAIL $name: $why\n";
    }
}
