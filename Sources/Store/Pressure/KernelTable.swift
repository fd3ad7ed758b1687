import Glibc

/// A file of the kernel's with a name and a number a line, as `memory.stat` and `meminfo`.
struct KernelStatFile {
    private let lines: [[UInt8].SubSequence]

    /// More than any such file holds.
    private static let bytesMax = 32 << 10

    /// Empty if there is no such file.
    init(_ path: String) {
        lines = Self.text(of: path).split(separator: UInt8(ascii: "\n"))
    }

    /// The number behind the name, which a colon may follow; nil if there is none, or it is no
    /// number.
    subscript(name: String) -> Int? {
        for line in lines where line.starts(with: name.utf8) {
            let rest = line.dropFirst(name.utf8.count)
            guard let next = rest.first, next == UInt8(ascii: " ") || next == UInt8(ascii: ":")
            else { continue }
            let words = rest.drop { $0 == UInt8(ascii: ":") }.split(separator: UInt8(ascii: " "))
            return words.first.flatMap(Self.number)
        }
        return nil
    }

    /// Page cache that the kernel can take back: the sum of the `lists`, without what is mapped,
    /// such as the program itself; nil if it is not said.
    func cacheBytes(_ lists: [String], mapped: String) -> Int? {
        var sum = 0
        for list in lists {
            guard let bytes = self[list] else { return nil }
            sum &+= bytes
        }
        return max(0, sum - (self[mapped] ?? 0))
    }

    /// The number that a text begins with, if only white space follows it; at most `Int.max`.
    static func number(_ text: some Sequence<UInt8>) -> Int? {
        var value: Int?
        var isOver = false
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !isOver:
                let (tens, overflow) = (value ?? 0).multipliedReportingOverflow(by: 10)
                let (sum, overflowToo) = tens.addingReportingOverflow(
                    Int(byte - UInt8(ascii: "0")))
                value = overflow || overflowToo ? .max : sum
            case UInt8(ascii: "\n"), UInt8(ascii: " "): isOver = true
            default: return nil
            }
        }
        return value
    }

    /// The bytes of a file, at most ``bytesMax``; none if it cannot be read.
    static func text(of path: String) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        return unsafe [UInt8](unsafeUninitializedCapacity: bytesMax) { room, done in
            guard let base = room.baseAddress else { return }
            while done < room.count {
                let count = unsafe Glibc.read(descriptor, base + done, room.count - done)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return }
                done += count
            }
        }
    }
}
