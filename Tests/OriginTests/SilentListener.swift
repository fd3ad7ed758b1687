import Glibc

/// Listens, but its backlog is full: whoever connects hears nothing.
final class SilentListener {
    private var sockets: [Int32] = []

    struct Failed: Error {}

    init(address: String, port: UInt16) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        sockets.append(listener)
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        guard unsafe inet_pton(AF_INET, address, &place.sin_addr) == 1,
            unsafe Self.call(bind, listener, &place) == 0, listen(listener, 0) == 0
        else { throw Failed() }
        // A backlog of 0 takes one connection; the next hears nothing any more.
        for _ in 1...3 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            sockets.append(filler)
            _ = unsafe Self.call(connect, filler, &place)
        }
    }

    func close() {
        for socket in sockets { _ = Glibc.close(socket) }
        sockets = []
    }

    deinit { close() }

    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ socket: Int32,
        _ place: inout sockaddr_in
    ) -> Int32 {
        unsafe withUnsafePointer(to: &place) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe function(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
