import Glibc
import Ground
import NIOCore
import Platform

/// A client connection as its event loop context manages it.
///
/// Confined to its event loop.
protocol ClientConnection: AnyObject {
    /// The port that accepted the connection.
    var plane: Plane { get }
    /// The client at the other end; `nil` after the connection has ended.
    var client: Client? { get }
    /// Index of the connection in ``ConnectionTable/all``.
    var index: Int { get set }
    /// Start of the time since which the connection is idle: no request is in progress and no
    /// response bytes are queued; `nil` if it is not idle.
    var idleSince: Instant? { get }

    /// Checks the deadlines; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant)
    /// Closes the connection as soon as no response is in progress.
    func drain()
    /// Applies new settings; `old` are the settings in force before.
    func settingsChanged(from old: NodeSettings)
    /// Closes the connection.
    func close()
    /// Closes the connection with a reset, so that the client does not take a partial response for
    /// a complete one.
    func abort()
}

extension ClientConnection {
    /// Instant since which the connection can be preempted for a new one without loss of a
    /// response; `nil` if it cannot.
    ///
    /// On the admin port, only connections that are not authenticated can be preempted, oldest
    /// first.
    var preemptibleSince: Instant? {
        guard let client, !client.isPreempted else { return nil }
        guard plane == .admin else { return idleSince }
        return client.isAuthenticated ? nil : client.openedAt
    }

    /// Returns true if an admin connection has not authenticated in time.
    func hasAuthenticationTimedOut(_ now: Instant) -> Bool {
        guard plane == .admin, let client, !client.isAuthenticated else { return false }
        return now >= client.openedAt + NodeSettings.authenticationTimeout
    }
}

extension Channel {
    /// Closes with a reset (RST), so that the peer does not take the data received so far for
    /// complete.
    func reset() {
        if let socket = self as? any SocketOptionProvider {
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        close(promise: nil)
    }
}

/// The client at the other end of a connection.
final class Client {
    /// The channel; `nil` for the node's own requests.
    private let channel: (any Channel)?
    /// Peer address of the connection, cached, because the channel provides it only as text.
    private var connectedAddress: IPAddress?
    /// Key under which ``ConnectionLimiter`` counts the connection.
    var limiterKey: ConnectionLimiter.ClientKey
    /// When the connection was accepted.
    let openedAt = SystemClock.now()
    /// True once a request on the connection has authenticated as an operator's.
    var isAuthenticated = false
    /// True once the connection has ceded its slot to a new one and is being closed.
    var isPreempted = false
    /// The client's address according to the PROXY protocol header of a trusted proxy.
    var proxiedAddress: IPAddress?
    /// True if the connection uses TLS.
    var isSecure = false
    /// True if the node has reset the connection; TLS then sends no close_notify.
    var isAborted = false
    /// Client address for the access log; `-` before ``recordRemoteAddress()``.
    private(set) var remote = "-"

    /// Creates the client of an accepted connection.
    init(of channel: any Channel) {
        self.channel = channel
        limiterKey = .init(nil)
        limiterKey = .init(address)
    }

    /// Creates the client that stands for the node itself, as if on an encrypted connection or a
    /// plain one.
    init(isSecure: Bool) {
        channel = nil
        limiterKey = .init(nil)
        self.isSecure = isSecure
    }

    /// The client's address: from the PROXY protocol if present, otherwise of the connection.
    var address: IPAddress? {
        if connectedAddress == nil {
            connectedAddress = channel?.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        }
        return proxiedAddress ?? connectedAddress
    }

    /// Saves the address, which is no longer available when the last access log line is written.
    func recordRemoteAddress() {
        remote = proxiedAddress.map { "\($0)" } ?? channel?.remoteAddress?.ipAddress ?? "-"
    }
}
