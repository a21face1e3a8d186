package local

import (
	"maps"
	"strings"
	"testing"
)

func TestMemoryThatIsSharedWithoutAFile(t *testing.T) {
	const addresses = `55d0c7000000-55d0c7021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000400000 rw-s 00000000 00:01 1031                       /dev/zero (deleted)
7f0000400000-7f0000500000 r--s 00400000 00:01 1031                       /dev/zero (deleted)
7f0001000000-7f0001001000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
7f0002000000-7f0002400000 rw-s 00000000 00:2a 5                          /dev/shm/zero (deleted)
7f0003000000-7f0003400000 r-xp 00000000 fe:01 99                         /usr/lib/x86_64-linux-gnu/libc.so.6
`
	got := map[string]int64{}
	if n := sharedWithoutFile(strings.NewReader(addresses), got, 7); n != 6 {
		t.Errorf("%d mappings, want 6", n)
	}
	if n := sharedWithoutFile(strings.NewReader(addresses), map[string]int64{}, 3); n != 3 {
		t.Errorf("%d mappings counted, want no more than asked for, 3", n)
	}
	if want := map[string]int64{"1031": 5 << 20, "77": 4096}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
