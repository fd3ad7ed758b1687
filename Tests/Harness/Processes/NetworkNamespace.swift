import Foundation
import Glibc

/// A network namespace (network_namespaces(7)) with its own interfaces, addresses and packet
/// filter, like those of another machine.
///
/// The namespace has no name and exists as long as its processes; one of them only keeps it alive.
/// It is removed on release.
package final class NetworkNamespace: Sendable {
    private let holder: Program
    private static let tools = ["unshare", "nsenter", "ip", "nft"]
    /// Maximum lifetime of the keeper process, in case no test is left to end it.
    private static let secondsMax = 900

    /// True if this process may create namespaces and the required tools are installed.
    package static let isAvailable: Bool = {
        guard geteuid() == 0, tools.allSatisfy({ (try? Program.find($0)) != nil }),
            let space = try? NetworkNamespace()
        else { return false }
        return (try? space.run("ip link add name probe type bridge; nft list ruleset")) != nil
    }()

    /// A failed command.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Creates a namespace with a loopback interface.
    package init() throws {
        holder = try Program(
            Program.find("unshare"), ["--net", try Program.find("sleep"), "\(Self.secondsMax)"])
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/net")
        let isOwn = Deadline.seconds(20).waitUntil { [path] in
            let there = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
            return !holder.isRunning || there.map { $0 != own } == true
        }
        guard isOwn, holder.isRunning else {
            throw Failure(description: "no network namespace: \(holder.errors)")
        }
        // Without IPv6 the kernel sends no unsolicited packets; where this is not permitted, IPv6
        // stays enabled.
        let setting = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
        try run("ip link set lo up; echo 1 2>/dev/null >\(setting) || true")
    }

    /// The id of the process that keeps the namespace.
    package var identifier: Int32 { holder.identifier }

    private var path: String { "/proc/\(identifier)/ns/net" }

    /// The words that run a command in this namespace, before the command itself.
    package var prefix: [String] {
        get throws { [try Program.find("nsenter"), "--net=\(path)", "--"] }
    }

    /// Runs a shell script in this namespace; it ends at the first command that fails.
    ///
    /// - Throws: ``Failure`` with the output of the failed command.
    @discardableResult
    package func run(_ script: String) throws -> String {
        let command = try prefix + [try Program.find("sh"), "-e", "-c", script]
        let result = try Program.run(command[0], Array(command.dropFirst()))
        guard result.status == 0 else {
            throw Failure(description: "\(script): \(result.errors)")
        }
        return String(decoding: result.output, as: UTF8.self)
    }

    /// Runs `body` on a thread in this namespace; sockets created there stay in it.
    package func perform<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) throws -> Result {
        let outcome = Monitor<Swift.Result<Result, any Error>?>(nil)
        Thread.detachNewThread { [path] in
            let result = Swift.Result {
                try enter(path)
                return try body()
            }
            outcome.update { $0 = result }
        }
        guard outcome.wait(until: .seconds(60), for: { $0 != nil }),
            let result = outcome.read({ $0 })
        else { throw Failure(description: "a thread of another namespace does not end") }
        return try result.get()
    }
}

/// Moves the calling thread into a network namespace.
private func enter(_ path: String) throws {
    // setns(2) with CLONE_NEWNET; Swift's Glibc module does not declare it.
    typealias Call = @convention(c) (CInt, CInt) -> CInt
    guard let symbol = unsafe dlsym(nil, "setns") else {
        throw NetworkNamespace.Failure(description: "no setns")
    }
    let call = unsafe unsafeBitCast(symbol, to: Call.self)
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError.last("open") }
    defer { close(descriptor) }
    guard call(descriptor, 0x4000_0000) == 0 else { throw SystemError.last("setns") }
}
