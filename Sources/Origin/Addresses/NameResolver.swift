import Glibc
package import Ground
package import NIOCore
package import NIOPosix

/// Resolves names to addresses; the address guard checks every result before use.
package protocol NameResolver: Sendable {
    /// Resolves `host` to its addresses, in the order in which to try them.
    ///
    /// - Returns: a future on `loop`, never empty on success; fails with ``ResolveFailure``.
    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]>
}

/// The reason why a name was not resolved.
package enum ResolveFailure: Error, Hashable, Sendable {
    /// The name does not exist, or has no address.
    case nameNotFound
    /// The resolver gave no result; carries the reason. A later query may succeed.
    case failed(String)
}

/// The system's resolver, called on threads that may block.
///
/// Uses `getaddrinfo`: the hosts file, DNS, and the order of RFC 6724.
package struct SystemResolver: NameResolver {
    private let threads: NIOThreadPool

    /// Creates a resolver on `threads`, which the caller starts and stops.
    ///
    /// The number of threads limits the number of concurrent look-ups.
    package init(threads: NIOThreadPool) {
        self.threads = threads
    }

    /// Resolves `host` on one of the threads.
    package func addresses(
        of host: String, on loop: any EventLoop
    ) -> EventLoopFuture<[IPAddress]> {
        threads.runIfActive(eventLoop: loop) { try Self.lookUp(host) }
            .flatMapErrorThrowing { error in
                throw error as? ResolveFailure ?? .failed("the resolver is stopped")
            }
    }

    /// `EAI_NODATA` and `EAI_ADDRFAMILY`, which glibc's netdb.h defines only for GNU programs.
    private static let noData: Int32 = -5
    private static let noAddressOfFamily: Int32 = -9

    private static func lookUp(_ host: String) throws(ResolveFailure) -> [IPAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        switch code {
        case 0: break
        case EAI_NONAME, noData, noAddressOfFamily: throw .nameNotFound
        default: throw .failed(unsafe String(cString: gai_strerror(code)))
        }
        var addresses: [IPAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe address(entry.pointee), !addresses.contains(address) {
                addresses.append(address)
            }
            unsafe next = entry.pointee.ai_next
        }
        if addresses.isEmpty { throw .nameNotFound }
        return addresses
    }

    /// Returns the address in a `sockaddr_in` or `sockaddr_in6`, or `nil` for another family.
    ///
    /// Read at its offset on Linux: more than one C module declares these structures, and the build
    /// determines which one is visible.
    private static func address(_ entry: addrinfo) -> IPAddress? {
        guard let pointer = unsafe entry.ai_addr else { return nil }
        let raw = UnsafeRawPointer(pointer)
        switch unsafe entry.ai_family {
        case AF_INET:
            let number = unsafe raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
            return .v4(UInt32(bigEndian: number))
        case AF_INET6:
            let number = unsafe raw.loadUnaligned(fromByteOffset: 8, as: UInt128.self)
            return .v6(UInt128(bigEndian: number))
        default: return nil
        }
    }
}
