import Ground
import NIOCore

/// Who is at the other end of a connection.
final class Client {
    /// Nil if it is the node itself.
    private let channel: (any Channel)?
    /// Of the connection, once somebody has asked; reading it of the channel makes a text of it.
    private var connectedAddress: IPAddress?
    /// As whom the connection counts among those of its port.
    var limiterKey: ConnectionLimiter.ClientKey
    let openedAt = SystemClock.now()
    /// A request has shown that it is an operator's.
    var isAuthenticated = false
    /// It has given up its place, and is being closed.
    var isPreempted = false
    /// The client's address as a trusted proxy gives it.
    var proxiedAddress: IPAddress?
    /// The connection is encrypted.
    var isSecure = false
    /// It ends in such a way that nobody can take what was sent for the whole.
    var isAborted = false
    /// For the access log; `-` before ``note()``.
    private(set) var remote = "-"

    init(of channel: any Channel) {
        self.channel = channel
        limiterKey = .init(nil)
        limiterKey = .init(address)
    }

    /// The node itself, which asks as a client would whose connection is encrypted or not.
    init(isSecure: Bool) {
        channel = nil
        limiterKey = .init(nil)
        self.isSecure = isSecure
    }

    /// Where requests come from.
    var address: IPAddress? {
        if connectedAddress == nil {
            connectedAddress = channel?.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        }
        return proxiedAddress ?? connectedAddress
    }

    /// Keeps the address, which is not known any more when the last line of the log is written.
    func recordRemoteAddress() {
        remote = proxiedAddress.map { "\($0)" } ?? channel?.remoteAddress?.ipAddress ?? "-"
    }
}
