// Package zxcvbn stands in for a fork of the library that ../nbutton23 stands in for.
package zxcvbn

import "github.com/nbutton23/zxcvbn-go"

// PasswordStrength is that of the other one.
func PasswordStrength(password string, userInputs []string) zxcvbn.MinEntropyMatch {
	return zxcvbn.PasswordStrength(password, userInputs)
}
