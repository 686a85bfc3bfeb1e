package provider

import (
	"strconv"
	"strings"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// login is a connection with a password, in the forms that clients read.
type login struct {
	instance.Connection
	password string // empty for none
}

// uri is libpq's connection URI.
func (l login) uri() string {
	user := escaped(l.User)
	if l.password != "" {
		user += ":" + escaped(l.password)
	}
	if user != "" {
		user += "@"
	}
	return "postgresql://" + user + l.Endpoint() + "/" + escaped(l.DBName) + "?sslmode=verify-full"
}

// jdbc is the URL of PostgreSQL's JDBC driver, which decodes its parameters as
// a form does.
func (l login) jdbc() string {
	text := "jdbc:postgresql://" + l.Endpoint() + "/" + escaped(l.DBName) + "?ssl=true&sslmode=verify-full"
	if l.User != "" {
		text += "&user=" + escaped(l.User)
	}
	if l.password != "" {
		text += "&password=" + escaped(l.password)
	}
	return text
}

// pgpass is a line of a .pgpass file.
func (l login) pgpass() string {
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`)
	return strings.Join([]string{
		escape.Replace(l.Host), strconv.FormatInt(l.Port, 10), escape.Replace(l.DBName), escape.Replace(l.User), escape.Replace(l.password),
	}, ":")
}

// escaped is a text in which every byte but letters, digits and -._~ is
// percent-encoded: right in every part of a URL, and for those who take + for
// a blank.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
