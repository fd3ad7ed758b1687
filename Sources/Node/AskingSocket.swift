import Glibc
import Ground
import NIOCore
import Telemetry

/// Why a node could not be asked.
enum AskingFailure: Error {
    case timedOut
    case system(CInt)
}

/// A connection for one question, on which nothing waits longer than until `deadline`.
struct AskingSocket: ~Copyable {
    private let descriptor: CInt
    private let deadline: Instant

    /// Connects.
    init(_ address: ListenAddress, until deadline: Instant) throws(AskingFailure) {
        let family = address.address.bitCount == 128 ? AF_INET6 : AF_INET
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        descriptor = socket(family, CInt(kind), 0)
        self.deadline = deadline
        guard descriptor >= 0 else { throw .system(errno) }
        guard try Self.connect(descriptor, to: address) == 0 else {
            guard errno == EINPROGRESS else { throw .system(errno) }
            try wait(for: POLLOUT)
            var code: CInt = 0
            var bytes = socklen_t(MemoryLayout<CInt>.size)
            unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &bytes)
            guard code == 0 else { throw .system(code) }
            return
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Sends `request`, and reads until the other side closes, or `answerBytesMax` have come.
    consuming func exchange(
        _ request: [UInt8], answerBytesMax: Int
    ) throws(AskingFailure) -> [UInt8] {
        var sent = 0
        while sent < request.count {
            let rest = Array(request[sent...])
            let count = unsafe send(descriptor, rest, rest.count, CInt(MSG_NOSIGNAL))
            if try hasToWait(count, POLLOUT) { continue }
            sent += count
        }
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while answer.count < answerBytesMax {
            let count = unsafe recv(descriptor, &piece, piece.count, 0)
            if try hasToWait(count, POLLIN) { continue }
            guard count > 0 else { break }
            answer += piece[..<count]
        }
        return answer
    }

    /// True if the call that gave `count` has to be made again.
    private func hasToWait(_ count: Int, _ event: CInt) throws(AskingFailure) -> Bool {
        guard count < 0 else { return false }
        switch errno {
        case EINTR: return true
        case EAGAIN:
            try wait(for: event)
            return true
        default: throw .system(errno)
        }
    }

    private func wait(for event: CInt) throws(AskingFailure) {
        var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        while true {
            let left = (deadline - SystemClock.now()).milliseconds
            guard left > 0 else { throw .timedOut }
            let ready = unsafe poll(&entry, 1, CInt(clamping: left + 1))
            if ready > 0 { return }
            guard ready == 0 || errno == EINTR else { throw .system(errno) }
        }
    }

    /// What connect(2) gives.
    private static func connect(
        _ descriptor: CInt, to address: ListenAddress
    ) throws(AskingFailure) -> CInt {
        let target: SocketAddress
        do {
            target = try SocketAddress(
                ipAddress: "\(address.address)", port: Int(address.port))
        } catch {
            throw .system(EADDRNOTAVAIL)
        }
        return unsafe target.withSockAddr { pointer, bytes in
            unsafe Glibc.connect(descriptor, pointer, socklen_t(bytes))
        }
    }
}
