import Cluster
import Ground
import Testing

@Suite("Waiters for receipts")
struct ReceiptWaitersTests {
    private let stream = ProcessID(high: 1, low: 1)
    private let other = ProcessID(high: 2, low: 2)

    private func name(_ number: UInt64, _ stream: ProcessID? = nil) -> RecordID {
        RecordID(stream: stream ?? self.stream, number: number)
    }

    @Test("All waiters up to the number that was reached complete, in any order")
    func upTo() {
        var waiters = ReceiptWaiters<Int>()
        for number in [4, 1, 3, 2] {
            _ = waiters.add(number, for: name(UInt64(number)), awaitsAll: true)
        }
        #expect(Set(waiters.removeCompleted { name, _ in name.number <= 2 }) == [1, 2])
        #expect(waiters.removeCompleted { name, _ in name.number <= 2 }.isEmpty)
        #expect(!waiters.isEmpty)
        #expect(Set(waiters.removeCompleted { _, _ in true }) == [3, 4])
        #expect(waiters.isEmpty)
    }

    @Test("Waiters for all, waiters for a majority, and streams are independent")
    func apart() {
        var waiters = ReceiptWaiters<String>()
        _ = waiters.add("all", for: name(1), awaitsAll: true)
        _ = waiters.add("one", for: name(2), awaitsAll: false)
        _ = waiters.add("other", for: name(9, other), awaitsAll: true)
        #expect(waiters.removeCompleted { !$1 && $0.stream == stream } == ["one"])
        #expect(waiters.removeCompleted { $0.stream == other && $1 } == ["other"])
        #expect(waiters.removeCompleted { $1 && $0.number == 1 } == ["all"])
        #expect(waiters.isEmpty)
    }

    @Test("One step asks only about the first incomplete record of each queue")
    func asksFew() {
        var waiters = ReceiptWaiters<UInt64>()
        for number in 1...1_000 as ClosedRange<UInt64> {
            _ = waiters.add(number, for: name(number), awaitsAll: true)
        }
        var asked = 0
        let taken = waiters.removeCompleted { name, _ in
            asked += 1
            return name.number <= 3
        }
        #expect(taken == [1, 2, 3] && asked == 4)
    }

    @Test("A removed waiter does not complete and leaves nothing behind")
    func removed() {
        var waiters = ReceiptWaiters<Int>()
        let tickets = [5, 5, 7].enumerated().map { index, number in
            waiters.add(index, for: name(UInt64(number)), awaitsAll: true)
        }
        waiters.remove(tickets[1])
        waiters.remove(tickets[1])
        #expect(waiters.removeCompleted { name, _ in name.number <= 5 } == [0])
        waiters.remove(tickets[0])
        waiters.remove(tickets[2])
        #expect(waiters.isEmpty)
    }
}
