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
}
