import Glibc

/// A child process of this program and its output.
final class KillChild {
    private let identifier: pid_t
    private let descriptor: CInt
    private var rest: [UInt8] = []
    private var status: CInt?

    /// Starts this program again with other arguments.
    init(_ arguments: [String]) throws(KillViolation) {
        var ends: [CInt] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw KillViolation("there is no pipe") }
        defer { close(ends[1]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        var pointers = unsafe (["nuthatch-bench"] + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe pointers.forEach { unsafe free($0) } }
        var identifier: pid_t = 0
        let result = unsafe posix_spawn(
            &identifier, "/proc/self/exe", &actions, nil, &pointers, environ)
        guard result == 0 else { throw KillViolation("no child could be started: \(result)") }
        self.identifier = identifier
        descriptor = ends[0]
    }

    /// No child outlives its campaign.
    deinit {
        if status == nil {
            kill()
            _ = wait()
        }
        close(descriptor)
    }

    /// Returns the lines that arrive within a millisecond; `nil` at the end.
    func read() -> [KillMessage]? {
        var entry = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
        guard unsafe poll(&entry, 1, 1) > 0 else { return [] }
        let room = 64 << 10
        let got = unsafe [UInt8](unsafeUninitializedCapacity: room) { raw, count in
            count = unsafe max(0, Glibc.read(descriptor, raw.baseAddress, room))
        }
        guard !got.isEmpty else { return nil }
        rest += got
        guard let last = rest.lastIndex(of: 0x0A) else { return [] }
        let lines = rest[..<last].split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        rest.removeSubrange(...last)
        return lines.map { KillMessage($0) ?? .violation("a child says \($0)") }
    }

    /// Kills the process; its id remains reserved until ``wait()``.
    func kill() {
        _ = Glibc.kill(identifier, SIGKILL)
    }

    /// Waits for the end and returns the status; 128 and more after a signal.
    func wait() -> CInt {
        var status: CInt = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let ended = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
        self.status = ended
        return ended
    }
}
