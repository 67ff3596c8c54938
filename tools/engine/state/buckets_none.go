//go:build !clouds

package state

import (
	"context"
	"fmt"
	"net/url"
)

func openBucket(_ context.Context, u *url.URL) (Store, error) {
	return nil, fmt.Errorf("this engine was built without clouds, and cannot open %s://: "+
		"unset KINDSTACK_ENGINE, or name the one of the image", u.Scheme)
}
