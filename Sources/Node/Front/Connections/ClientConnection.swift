import Glibc
import Ground
import NIOCore

/// A client's connection, as its hall deals with it.
///
/// Confined to the loop of its hall.
protocol ClientConnection: AnyObject {
    var plane: RequestHandler.Plane { get }
    /// Nil once it is gone.
    var client: Client? { get }
    /// Where the hall keeps the connection.
    var index: Int { get set }
    /// Since when the client has not asked for anything that it was not given; nil while it has.
    var idleSince: Instant? { get }

    /// Looks at the deadlines; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant)
    /// Closes as soon as no answer is in progress.
    func drain()
    /// The hall has other settings now, instead of `old`.
    func settingsChanged(from old: NodeSettings)
    func close()
    /// Ends with a reset, so that no client can take what it has for a whole answer.
    func abort()
}

extension ClientConnection {
    /// Since when it could be closed for a newcomer without an answer being lost; nil if it cannot.
    ///
    /// Operators go only as long as they have not proven to be such, in the order in which they
    /// came.
    var preemptibleSince: Instant? {
        guard let client, !client.isPreempted else { return nil }
        guard plane == .admin else { return idleSince }
        return client.isAuthenticated ? nil : client.openedAt
    }
}

extension Channel {
    /// Closes with a reset (RST), so that the other side cannot take what it has for the end.
    func reset() {
        if let socket = self as? any SocketOptionProvider {
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        close(promise: nil)
    }
}

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
