// Package scram turns a password into the verifier that PostgreSQL stores, so
// that the password itself never has to reach the database's machine.
package scram

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/xdg-go/scram"
	"github.com/xdg-go/stringprep"
	"golang.org/x/text/unicode/norm"
)

const (
	// iterations and saltBytes are PostgreSQL's own defaults.
	iterations = 4096
	saltBytes  = 16

	zeroWidthSpace = "\u200b"
)

// Verifier returns a SCRAM-SHA-256 verifier of password with a random salt, in
// the form of pg_authid.rolpassword (RFC 5803):
// SCRAM-SHA-256$4096:salt$StoredKey:ServerKey.
func Verifier(password string) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("draw salt: %w", err)
	}
	return verifier(password, salt, iterations)
}

func verifier(password string, salt []byte, iterations int) (string, error) {
	// The user name is not part of a verifier.
	client, err := scram.SHA256.NewClientUnprepped("", prepare(password), "")
	if err != nil {
		return "", fmt.Errorf("derive verifier: %w", err)
	}
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return "", fmt.Errorf("derive verifier: %w", err)
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored.StoredKey), encode(stored.ServerKey)), nil
}

// prepare is SASLprep as libpq does it: a password that is not UTF-8, that
// SASLprep refuses, or of which nothing is left is used as it is.
func prepare(password string) string {
	if !utf8.ValidString(password) {
		return password
	}
	// RFC 3454 has U+200B both in the table of blanks (C.1.2) and in that of
	// characters mapped to nothing (B.1). libpq looks at the blanks first,
	// stringprep at the other table.
	spaced := strings.ReplaceAll(password, zeroWidthSpace, " ")
	// libpq looks for what is prohibited before it normalises, where RFC 4013
	// does so afterwards: one more step instead of stringprep's own.
	profile := stringprep.SASLprep
	profile.Normalize = false
	mapped, err := profile.Prepare(spaced)
	if err != nil || mapped == "" {
		return password
	}
	return norm.NFKC.String(mapped)
}
