// Package zxcvbn stands in for a library of the same name whose dictionaries take a fifth of the start of the CLI and 18 MB
// of memory. The CLI asks it one thing: whether a configuration value that is set as plain text looks like a secret.
package zxcvbn

import (
	"math"
	"unicode"
)

// MinEntropyMatch has what the CLI reads of a password's strength.
type MinEntropyMatch struct {
	Entropy float64 // in bits
}

// PasswordStrength takes all characters for random ones of their classes. Knowing no words, it takes more values for
// secrets than the library does.
func PasswordStrength(password string, _ []string) MinEntropyMatch {
	var lower, upper, digits, others, count float64
	for _, character := range password {
		count++
		switch {
		case unicode.IsLower(character):
			lower = 26
		case unicode.IsUpper(character):
			upper = 26
		case unicode.IsDigit(character):
			digits = 10
		default:
			others = 33
		}
	}
	if count == 0 {
		return MinEntropyMatch{}
	}
	return MinEntropyMatch{Entropy: count * math.Log2(lower+upper+digits+others)}
}
