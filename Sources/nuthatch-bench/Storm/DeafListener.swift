import Glibc

/// Listens with a backlog that is full: who connects hears nothing.
final class DeafListener {
    private var sockets: [CInt] = []
    let port: Int

    init() throws {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        sockets = [listener]
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = unsafe withUnsafeMutablePointer(to: &place) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, size) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isListening else { throw BenchNode.Failed(description: "no port is free") }
        port = Int(UInt16(bigEndian: place.sin_port))
        for _ in 1...3 {
            let filler = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            sockets.append(filler)
            unsafe withUnsafePointer(to: &place) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    _ = unsafe connect(filler, address, size)
                }
            }
        }
    }

    deinit {
        for socket in sockets { Glibc.close(socket) }
    }
}
