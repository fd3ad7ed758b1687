import Foundation
import Harness

/// Silent connections to a port, each reopened as soon as it is closed, until `leave()`.
final class StrangerCrowd: Sendable {
    private let count: Int
    private let open = LockedBox(0)
    private let isOver = LockedBox(false)

    init(_ count: Int, at port: Int) {
        self.count = count
        Thread.detachNewThread { [open, isOver] in
            var sockets: [Socket?] = Array(repeating: nil, count: count)
            while !isOver.value {
                for index in sockets.indices {
                    // A short wait for each: the node has other work as well.
                    if sockets[index]?.isEndedByPeer(seconds: 0.001) ?? true {
                        sockets[index] = try? HTTPConnection(port: port).socket
                    }
                }
                open.value = sockets.count { $0 != nil }
            }
        }
    }

    /// True once all connections are open from the client's view.
    var isThere: Bool { open.value == count }

    func waitUntilThere() -> Bool { Deadline.seconds(30).waitUntil { isThere } }

    func leave() { isOver.value = true }
}
