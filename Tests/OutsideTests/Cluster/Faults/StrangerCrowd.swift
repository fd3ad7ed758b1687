import Foundation
import Harness

/// Connections to a port that say nothing, each made anew as soon as it is ended, until they are
/// to leave.
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
                    // A moment each: the node has other things to do as well.
                    if sockets[index]?.isEndedByPeer(seconds: 0.001) ?? true {
                        sockets[index] = try? HTTPConnection(port: port).socket
                    }
                }
                open.value = sockets.count { $0 != nil }
            }
        }
    }

    /// All are connected, as far as they can tell.
    var isThere: Bool { open.value == count }

    func waitUntilThere() -> Bool { Deadline.seconds(30).waitUntil { isThere } }

    func leave() { isOver.value = true }
}
