module kindstack.dev/tools/pulumi

go 1.26.0

require (
	github.com/pulumi/pulumi/pkg/v3 v3.255.0
	github.com/pulumi/pulumi/sdk/v3 v3.255.0
	github.com/spf13/cobra v1.10.2
)

// pkg/v3 itself carries this replacement; a main module has to repeat it.
replace github.com/atotto/clipboard => github.com/tgummerer/clipboard v0.0.0-20241001131231-d02d263e614e

// Dictionaries of passwords, read at each start; see zxcvbn/.
replace (
	github.com/ccojocar/zxcvbn-go => ./zxcvbn/ccojocar
	github.com/nbutton23/zxcvbn-go => ./zxcvbn/nbutton23
)
