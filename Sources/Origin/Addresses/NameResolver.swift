import Glibc
package import Ground
package import NIOCore
package import NIOPosix

/// Turns names into addresses; what it says is not trusted but judged by the address guard.
package protocol NameResolver: Sendable {
    /// The addresses of `host` in the order in which they should be tried; never empty on success.
    ///
    /// The future is on `loop` and fails with ``ResolveFailure``.
    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]>
}

/// Why a name was not turned into addresses.
package enum ResolveFailure: Error, Hashable, Sendable {
    /// The name does not exist, or has no address.
    case nameNotFound
    /// No answer; carries the reason. The next attempt may succeed.
    case failed(String)
}

/// The system's resolver (`getaddrinfo`: hosts file, DNS, RFC 6724 order), called on threads where
/// it may wait.
package struct SystemResolver: NameResolver {
    private let threads: NIOThreadPool

    /// Looks up on `threads`, which the caller starts and stops and on whose number concurrent
    /// look-ups depend.
    package init(threads: NIOThreadPool) {
        self.threads = threads
    }

    package func addresses(
        of host: String, on loop: any EventLoop
    ) -> EventLoopFuture<[IPAddress]> {
        threads.runIfActive(eventLoop: loop) { try Self.lookUp(host) }
            .flatMapErrorThrowing { error in
                throw error as? ResolveFailure ?? .failed("the resolver is stopped")
            }
    }

    /// `EAI_NODATA` and `EAI_ADDRFAMILY`, which glibc's netdb.h shows only to GNU programs.
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

    /// The address in a `sockaddr_in` or `sockaddr_in6`, read at its place in them on Linux: more
    /// than one C module claims these structures, and which of them is seen depends on the build.
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
