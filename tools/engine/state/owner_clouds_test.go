//go:build clouds

package state

import (
	"testing"

	"gocloud.dev/blob/memblob"
)

func TestOneOfSeveralClaimsABucket(t *testing.T) {
	for range 20 {
		store := buckets{memblob.OpenBucket(nil)}
		claimedByOneOf(t, 8, func(int) *Stacks { return New(store, NewHolder("session", nil), Provider{}) })
	}
}
