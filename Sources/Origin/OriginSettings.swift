package import Ground

/// Limits of the origin client; all are per event loop or per fetch.
package struct OriginSettings: Hashable, Sendable {
    /// From the start of a fetch to a usable connection: name look-up and all addresses tried.
    package var connectLimit: Interval = .seconds(10)
    /// From the request to the end of the answer's head, interim answers included.
    package var headLimit: Interval = .seconds(30)
    /// Between two reads that bring bytes of a body; does not run while the fetch is paused.
    package var idleLimit: Interval = .seconds(30)
    /// From the start of a fetch to its end, pauses included.
    package var totalLimit: Interval = .seconds(600)
    /// Greatest size in bytes of an answer's head.
    package var headBytesMax = 64 * 1024
    /// Greatest number of field lines in an answer's head.
    package var headFieldsMax = 128
    /// Greatest number of interim (1xx) answers before the final one.
    package var interimAnswersMax = 8
    /// Greatest number of addresses of one name that are tried.
    package var addressesTriedMax = 8
    /// Greatest number of names looked up at once.
    package var lookupsMax = 256
    /// Greatest number of connections, idle ones included.
    package var connectionsMax = 4096
    /// Greatest number of idle connections to all origins together.
    package var idleConnectionsMax = 128
    /// Greatest number of idle connections to one origin.
    package var idleConnectionsPerOriginMax = 32
    /// How long a connection is kept idle.
    package var idleConnectionLimit: Interval = .seconds(55)
    /// Size in bytes of one read from a connection.
    package var receiveBufferBytes = 64 * 1024
    /// The kernel's receive buffer of a connection in bytes; what a paused fetch can at most be
    /// handed late.
    package var receiveWindowBytes = 256 * 1024

    package init() {}
}
