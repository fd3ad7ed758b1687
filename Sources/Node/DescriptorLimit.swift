import Glibc

/// The process's limit on open descriptors.
enum DescriptorLimit {
    /// Raises the soft limit to the hard one; gives what holds now.
    static func raise() -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1024
        }
        let soft = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        let raised = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Int(clamping: raised ? limit.rlim_max : soft)
    }

    /// Connections of clients that leave room for `fills` origin connections, idle ones, log and
    /// files.
    static func connections(of descriptors: Int, fills: Int) -> Int {
        max(16, descriptors - min(fills, descriptors / 2) - reserve)
    }

    /// Listening sockets, event loops, standard streams, idle connections to origins.
    private static let reserve = 256
}
