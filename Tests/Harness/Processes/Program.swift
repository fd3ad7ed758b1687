package import Foundation
import Glibc

/// The exit status and output of a program that has ended.
package struct ProgramResult: Sendable {
    /// The exit status, 128 + the signal's number after a signal, `nil` if it had to be killed.
    package let status: Int?
    /// The bytes of standard output.
    package let output: Data
    /// The text of standard error.
    package let errors: String
}

/// A child process whose output goes to files in a temporary folder of its own.
package final class Program: Sendable {
    /// The process id.
    package let identifier: Int32
    private let folder: TemporaryFolder
    /// The exit status as returned by `wait(2)`, once the process has ended.
    private let ended = Monitor<Int32?>(nil)

    /// The error for a program that cannot be found.
    package struct NotFound: Error {
        /// The name of the program.
        package let name: String
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: The program's path.
    ///   - arguments: Its arguments.
    ///   - environment: Variables added to those of this process, without its `NUTHATCH_…`
    ///     variables.
    /// - Throws: A system error if the program cannot be started.
    package init(_ path: String, _ arguments: [String], environment: [String: String] = [:]) throws
    {
        folder = try TemporaryFolder()
        let inherited = ProcessInfo.processInfo.environment.filter {
            !$0.key.hasPrefix("NUTHATCH_")
        }
        let all = inherited.merging(environment) { $1 }.map { "\($0)=\($1)" }
        identifier = try spawn(
            [path] + arguments, environment: all,
            output: folder.appending(path: "out").path,
            errors: folder.appending(path: "err").path)
        Thread.detachNewThread { [ended, identifier] in reap(identifier, ended) }
    }

    deinit { kill() }

    /// True while the process runs.
    package var isRunning: Bool { ended.read { $0 == nil } }

    /// The bytes of standard output so far.
    package var output: Data { read("out") }

    /// The text of standard error so far.
    package var errors: String { String(decoding: read("err"), as: UTF8.self) }

    private func read(_ name: String) -> Data {
        (try? Data(contentsOf: folder.appending(path: name))) ?? Data()
    }

    /// Requests a graceful stop (SIGTERM).
    package func terminate() { signal(SIGTERM) }

    /// Requests a reload of the configuration (SIGHUP).
    package func hangUp() { signal(SIGHUP) }

    /// Kills the process (SIGKILL) and waits for its end.
    package func kill() {
        signal(SIGKILL)
        _ = ended.wait(until: .seconds(10)) { $0 != nil }
    }

    /// True once the process has a handler for a signal.
    package func catches(_ number: Int32) -> Bool { has(number, in: "SigCgt") }

    /// True once the process ignores a signal.
    package func ignores(_ number: Int32) -> Bool { has(number, in: "SigIgn") }

    private func has(_ number: Int32, in set: String) -> Bool {
        let path = "/proc/\(identifier)/status"
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(set + ":") } ?? ""
        let mask = line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
        return mask & 1 << UInt64(number - 1) != 0
    }

    /// Sends a signal unless the process has ended.
    package func signal(_ number: Int32) {
        ended.read { status in
            if status == nil { _ = Glibc.kill(identifier, number) }
        }
    }

    /// Waits for the process to end and returns its exit status, or `nil` on timeout.
    package func wait(seconds: Double) -> Int? {
        guard ended.wait(until: .seconds(seconds), for: { $0 != nil }) else { return nil }
        return ended.read { status in
            status.map { Int($0 & 0x7F == 0 ? $0 >> 8 & 0xFF : 128 + $0 & 0x7F) }
        }
    }

    /// Runs a program to its end, and kills it on timeout.
    package static func run(
        _ path: String, _ arguments: [String], environment: [String: String] = [:],
        seconds: Double = 30
    ) throws -> ProgramResult {
        let program = try Program(path, arguments, environment: environment)
        let status = program.wait(seconds: seconds)
        program.kill()
        return ProgramResult(status: status, output: program.output, errors: program.errors)
    }

    /// Returns the path of a program found through `PATH`.
    package static func find(_ name: String) throws -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let candidates = path.split(separator: ":").map { "\($0)/\(name)" }
        guard let found = candidates.first(where: FileManager.default.isExecutableFile) else {
            throw NotFound(name: name)
        }
        return found
    }

    /// Creates a new empty folder for temporary files.
    package static func temporaryFolder() throws -> URL {
        try folder(in: FileManager.default.temporaryDirectory, mode: 0o700)
    }

    /// Creates a new temporary folder that other users can reach, wherever `TMPDIR` points.
    package static func openFolder() throws -> URL {
        try folder(in: URL(fileURLWithPath: "/var/tmp"), mode: 0o755)
    }

    private static func folder(in parent: URL, mode: Int) throws -> URL {
        // A short name: the paths of sockets below it have at most 107 bytes.
        let name = String(UInt64.random(in: 0...UInt64.max), radix: 36)
        let folder = parent.appendingPathComponent("nut-\(name)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.path)
        return folder
    }
}

/// Waits for a child to end and collects its exit status.
///
/// The child's id is released under the lock, so that no signal can reach another process that has
/// been assigned the same id since.
private func reap(_ identifier: Int32, _ ended: Monitor<Int32?>) {
    var info = unsafe siginfo_t()
    while unsafe waitid(P_PID, id_t(identifier), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    ended.update { ended in
        var status: Int32 = 0
        _ = unsafe waitpid(identifier, &status, 0)
        ended = status
    }
}

/// Starts a process with its output in files and default handling of all signals.
///
/// The process inherits no other descriptor: it would keep the port of a stopped origin open.
///
/// - Parameters:
///   - arguments: The program's path and its arguments.
///   - environment: Variables as `NAME=value`.
///   - output: The file that standard output is written to.
///   - errors: The file that standard error is written to.
/// - Returns: The process id.
/// - Throws: A system error if the process cannot be started.
func spawn(
    _ arguments: [String], environment: [String], output: String, errors: String
) throws -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    let flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, flags, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, errors, flags, 0o600)
    closeDescriptorsOnExec()

    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    var all = sigset_t()
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setflags(
        &attributes, CShort(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var argumentPointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
    var environmentPointers = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer {
        unsafe argumentPointers.forEach { unsafe free($0) }
        unsafe environmentPointers.forEach { unsafe free($0) }
    }
    var identifier: pid_t = 0
    let result = unsafe posix_spawn(
        &identifier, arguments[0], &actions, &attributes, &argumentPointers, &environmentPointers)
    guard result == 0 else { throw SystemError(call: "posix_spawn", number: result) }
    return identifier
}

/// Marks every open descriptor as close-on-exec; not every library opens its own that way.
private func closeDescriptorsOnExec() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for descriptor in names.compactMap({ CInt($0) }) where descriptor > 2 {
        let flags = fcntl(descriptor, F_GETFD)
        if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
    }
}
