import Ground
import NIOCore

/// Who is at the other end of a connection.
final class Client {
    /// Nil if it is the node itself.
    private let channel: (any Channel)?
    /// Of the connection, once somebody has asked; reading it of the channel makes a text of it.
    private var connected: IPAddress?
    /// As whom the connection counts among those of its port.
    var holder: ConnectionPlaces.Holder
    let openedAt = SystemClock.now()
    /// A request has shown that it is an operator's.
    var isProven = false
    /// It has given up its place, and is being closed.
    var hasYielded = false
    /// The client's address as a trusted proxy gives it.
    var proxied: IPAddress?
    /// The connection is encrypted.
    var isSecure = false
    /// It ends in such a way that nobody can take what was sent for the whole.
    var isBrokenOff = false
    /// For the access log; `-` before ``note()``.
    private(set) var remote = "-"

    init(of channel: any Channel) {
        self.channel = channel
        holder = .init(nil)
        holder = .init(address)
    }

    /// The node itself, which asks as a client would whose connection is encrypted or not.
    init(isSecure: Bool) {
        channel = nil
        holder = .init(nil)
        self.isSecure = isSecure
    }

    /// Where requests come from.
    var address: IPAddress? {
        if connected == nil {
            connected = channel?.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        }
        return proxied ?? connected
    }

    /// Keeps the address, which is not known any more when the last line of the log is written.
    func note() {
        remote = proxied.map { "\($0)" } ?? channel?.remoteAddress?.ipAddress ?? "-"
    }
}
