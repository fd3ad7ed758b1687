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

    /// `EAI_NODATA`, which glibc's netdb.h defines only for GNU programs.
    private static let noData: Int32 = -5
    /// `EAI_ADDRFAMILY`, like ``noData``.
    private static let noAddressOfFamily: Int32 = -9

    /// Queries `getaddrinfo` and returns the distinct addresses in its order; blocks.
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

/// The name look-ups of one event loop; fetches that need the same name share one.
///
/// Confined to its event loop.
final class NameLookups {
    private let resolver: any NameResolver
    private let loop: any EventLoop
    private let coordinator: OriginCoordinator
    /// Maximum number of concurrent look-ups.
    private let countMax: Int
    private let now: @Sendable () -> Instant
    /// Look-ups in progress by name.
    private var running: [String: EventLoopFuture<[IPAddress]>] = [:]

    /// Creates look-ups by `resolver`, whose results are cached at `coordinator`.
    init(
        by resolver: any NameResolver, on loop: any EventLoop, coordinator: OriginCoordinator,
        countMax: Int, now: @escaping @Sendable () -> Instant
    ) {
        self.resolver = resolver
        self.loop = loop
        self.coordinator = coordinator
        self.countMax = countMax
        self.now = now
    }

    /// Number of names being looked up.
    var count: Int { running.count }

    /// Returns the addresses of a name, from the cache or from the resolver; `nil` if too many
    /// names are being looked up.
    ///
    /// The wait for a silent resolver is short if stale addresses are known (RFC 8767 §5).
    func addresses(of host: String) -> EventLoopFuture<[IPAddress]>? {
        switch coordinator.cachedResolution(host, now: now()) {
        case .addresses(let addresses)?: return loop.makeSucceededFuture(addresses)
        case .notFound?: return loop.makeFailedFuture(ResolveFailure.nameNotFound)
        case .failed(let reason)?: return loop.makeFailedFuture(ResolveFailure.failed(reason))
        case nil: break
        }
        guard let lookup = lookup(host) else { return nil }
        guard let known = coordinator.staleAddresses(host, now: now()) else { return lookup }
        let promise = loop.makePromise(of: [IPAddress].self)
        let start = now()
        let patience = loop.schedule(at: start + DNSCache.clientResponseTimeout, now: start) {
            promise.succeed(known)
        }
        lookup.assumeIsolated().whenComplete { result in
            patience.cancel()
            promise.completeWith(result)
        }
        return promise.futureResult
    }

    /// Returns the look-up of a name in progress, or starts one; `nil` if too many names are being
    /// looked up.
    private func lookup(_ host: String) -> EventLoopFuture<[IPAddress]>? {
        if let running = running[host] { return running }
        guard running.count < countMax else { return nil }
        let (coordinator, now) = (coordinator, now)
        let lookup = resolver.addresses(of: host, on: loop).hop(to: loop)
            .map { Result<[IPAddress], ResolveFailure>.success($0) }
            .recover { .failure($0 as? ResolveFailure ?? .failed(String(describing: $0))) }
            .flatMapThrowing { try coordinator.recordResolution($0, of: host, now: now()).get() }
        running[host] = lookup
        lookup.assumeIsolated().whenComplete { _ in self.running[host] = nil }
        return lookup
    }
}

extension EventLoop {
    /// Runs `task` on this loop at `deadline` or shortly after, but not within a millisecond; the
    /// caller cancels it when it is not needed.
    func schedule(
        at deadline: Instant, now: Instant, _ task: @escaping () -> Void
    ) -> Scheduled<Void> {
        // A clock that runs behind the loop's must not make a timer that fires early spin.
        let left = max(1_000_000, (deadline - now).nanoseconds)
        return assumeIsolated().scheduleTask(in: .nanoseconds(left), task)
    }
}
