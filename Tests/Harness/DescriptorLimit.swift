import Glibc

/// The number of files and sockets this process may hold open.
package enum DescriptorLimit {
    /// Raises the soft limit to the hard one, once, so that thousands of connections fit.
    package static func raise() {
        _ = raised
    }

    private static let raised: Void = {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return
        }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }()
}
