import Front
import Glibc
import Ground
import NIOPosix
import NodeConfiguration
import Telemetry

/// The listening sockets that a service manager has passed to this process, sd_listen_fds(3), by
/// their local addresses.
///
/// The service manager keeps them open while the node is not running, so that connections made
/// meanwhile wait and are not refused.
struct PassedSockets: Sendable {
    /// The descriptors by local address.
    let descriptors: [ListenAddress: CInt]
    /// The descriptors that are not listening TCP sockets, or whose address another one has.
    let unusable: [CInt]

    /// The first passed descriptor, SD_LISTEN_FDS_START.
    private static let first: CInt = 3
    /// Upper limit of the number of descriptors; service managers pass a few.
    private static let countMax: CInt = 64

    /// Returns the sockets that the environment announces for this process, and removes its
    /// variables so that no child process takes them for its own.
    static func fromEnvironment() -> PassedSockets {
        let process = ServiceNotifier.removeVariable("LISTEN_PID").flatMap { Int32($0) }
        let count = ServiceNotifier.removeVariable("LISTEN_FDS").flatMap { CInt($0) }
        _ = ServiceNotifier.removeVariable("LISTEN_FDNAMES")
        guard process == getpid(), let count, count > 0 else { return PassedSockets([]) }
        return PassedSockets(first..<first + min(count, countMax))
    }

    /// Takes over descriptors; they are no longer inherited by child processes.
    init(_ passed: some Sequence<CInt>) {
        var descriptors: [ListenAddress: CInt] = [:]
        var unusable: [CInt] = []
        for descriptor in passed {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            if let address = Self.listeningAddress(descriptor), descriptors[address] == nil {
                descriptors[address] = descriptor
            } else {
                unusable.append(descriptor)
            }
        }
        (self.descriptors, self.unusable) = (descriptors, unusable)
    }

    /// Checks that every socket is used: connections to another one would never be accepted.
    ///
    /// - Throws: an error that names the first descriptor without a use.
    func checkUse(by configuration: Configuration) throws(PassedSocketError) {
        let addresses =
            configuration.listen + configuration.plainListen
            + [configuration.adminListen].compactMap(\.self)
        if let descriptor = unusable.min() { throw PassedSocketError(descriptor: descriptor) }
        let unused = descriptors.filter { !addresses.contains($0.key) }
        if let (address, descriptor) = unused.min(by: { $0.value < $1.value }) {
            throw PassedSocketError(descriptor: descriptor, address: address)
        }
    }

    /// Accepts connections on the passed socket with this address, or on a new one.
    func install(
        _ address: ListenAddress, _ plane: Plane, isPlain: Bool = false, to node: NodeCore,
        on group: MultiThreadedEventLoopGroup
    ) async throws -> Listener {
        try await Listener.install(
            address, plane, isPlain: isPlain, passed: descriptors[address], to: node, on: group)
    }

    /// Returns the local address of a listening TCP socket; `nil` for any other descriptor.
    private static func listeningAddress(_ descriptor: CInt) -> ListenAddress? {
        var isListening: CInt = 0
        var bytes = socklen_t(MemoryLayout<CInt>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &bytes) == 0,
            isListening == 1
        else { return nil }
        var storage = sockaddr_storage()
        bytes = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutableBytes(of: &storage) { raw -> ListenAddress? in
            let isRead = unsafe raw.withMemoryRebound(to: sockaddr.self) { pointer in
                unsafe getsockname(descriptor, pointer.baseAddress, &bytes) == 0
            }
            guard isRead else { return nil }
            // Read at its offset on Linux, as in `NameResolver`.
            let family = unsafe CInt(raw.loadUnaligned(as: sa_family_t.self))
            let port = unsafe UInt16(
                bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            switch family {
            case AF_INET:
                let number = unsafe raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
                return ListenAddress(address: .v4(UInt32(bigEndian: number)), port: port)
            case AF_INET6:
                let number = unsafe raw.loadUnaligned(fromByteOffset: 8, as: UInt128.self)
                return ListenAddress(address: .v6(UInt128(bigEndian: number)), port: port)
            default: return nil
            }
        }
    }
}

/// Error of a start with a passed socket that the node cannot use.
struct PassedSocketError: Error, CustomStringConvertible {
    /// The number of the descriptor.
    let descriptor: CInt
    /// The local address of a listening TCP socket; `nil` for anything else.
    var address: ListenAddress?

    var description: String {
        guard let address else {
            return "descriptor \(descriptor) of LISTEN_FDS is not a listening TCP socket"
                + " with an address of its own"
        }
        return "descriptor \(descriptor) of LISTEN_FDS listens on \(address), which none of"
            + " listen, plain-listen and admin-listen names"
    }
}
