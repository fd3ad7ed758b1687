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

    /// Connections of clients that leave room for `fills` origin connections, `idle` ones beside
    /// them, and the reserve.
    static func connections(of descriptors: Int, fills: Int, idle: Int) -> Int {
        max(16, descriptors - min(fills, descriptors / 2) - idle - reserve)
    }

    /// Idle connections to origins that one of `loops` loops may keep, if one origin may have
    /// `perOrigin`: all of them together take at most an eighth of the descriptors.
    static func idleConnections(of descriptors: Int, loops: Int, perOrigin: Int) -> Int {
        min(max(128, perOrigin), descriptors / 8 / loops)
    }

    /// Listening sockets, event loops, standard streams, operators' connections, look-ups of names.
    private static let reserve = 160
}
