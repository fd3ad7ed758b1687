import Foundation
import Glibc

/// Starts a process with its output in files and all signals as they are by default.
///
/// No descriptor of this process reaches it: it would hold an origin's port open that has stopped.
///
/// - Parameters:
///   - arguments: The program's path and its arguments.
///   - environment: `NAME=value`.
///   - output: The file that standard output is written to.
///   - errors: The file that standard error is written to.
/// - Returns: The process id.
/// - Throws: What the system says against it.
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

/// Marks every open descriptor to be closed in children; not every library opens its so.
private func closeDescriptorsOnExec() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for descriptor in names.compactMap({ CInt($0) }) where descriptor > 2 {
        let flags = fcntl(descriptor, F_GETFD)
        if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
    }
}
