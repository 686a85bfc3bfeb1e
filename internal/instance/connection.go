package instance

import (
	"net"
	"net/url"
	"strconv"
)

// Connection is where and as whom to log in.
type Connection struct {
	Host   string // address without brackets
	Port   int64
	DBName string
	User   string
}

// known says whether clients can use it yet.
func (c Connection) known() bool { return c.Host != "" && c.Port != 0 }

// Endpoint returns host:port, an IPv6 address in brackets; empty while unknown.
func (c Connection) Endpoint() string {
	if !c.known() {
		return ""
	}
	return net.JoinHostPort(c.Host, strconv.FormatInt(c.Port, 10))
}

// URI returns libpq's connection URI, without a password; empty while unknown.
func (c Connection) URI() string {
	if !c.known() || c.DBName == "" {
		return ""
	}
	u := url.URL{Scheme: "postgresql", Host: c.Endpoint(), Path: "/" + c.DBName, RawQuery: "sslmode=verify-full"}
	if c.User != "" {
		u.User = url.User(c.User)
	}
	return u.String()
}

// JDBC returns the URL for PostgreSQL's JDBC driver, without user and
// password; empty while unknown.
func (c Connection) JDBC() string {
	if !c.known() || c.DBName == "" {
		return ""
	}
	return "jdbc:postgresql://" + c.Endpoint() + "/" + url.PathEscape(c.DBName) + "?ssl=true&sslmode=verify-full"
}

// Connection returns how to reach the instance as it was read.
func (i *Instance) Connection() Connection {
	return Connection{Host: i.Address, Port: i.Port, DBName: i.DBName, User: i.MasterUsername}
}
