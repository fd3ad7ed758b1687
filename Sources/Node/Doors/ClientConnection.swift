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
