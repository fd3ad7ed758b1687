import Ground
import Node
import Testing

@Suite("How many begin in a turn")
struct TurnBudgetTests {
    private typealias Budget = TurnBudget<String, Int>

    private let start = Instant(nanoseconds: 1_000_000_000)

    /// A budget of which all has begun that may in one turn, and ten that wait; with the instant at
    /// which the next turn is due.
    private func crowded() throws -> (Budget, due: Instant) {
        var budget = Budget()
        #expect(budget.isOpen)
        let first = budget.begin(now: start)
        let due = try #require(first)
        for _ in 1..<Budget.startsMax {
            let next = budget.begin(now: start)
            #expect(next == nil)
        }
        #expect(!budget.isOpen)
        for number in 1...10 { budget.line.append(number, of: "client") }
        return (budget, due)
    }

    private func taken(_ budget: inout Budget, _ now: Instant) -> [Int] { budget.next(now: now) }

    @Test("in a turn that comes in time as many as may, and nobody passes those who wait")
    func inTime() throws {
        var (budget, due) = try crowded()
        #expect(taken(&budget, due) == [1, 2, 3, 4])
        #expect(!budget.isOpen)
        let end = budget.end(4, now: due)
        let next = try #require(end)
        #expect(next > due)
        #expect(taken(&budget, next + Budget.latenessMax) == [5, 6, 7, 8])
    }

    @Test("in one that comes late a single one, and as many as before when it is in time again")
    func late() throws {
        var (budget, due) = try crowded()
        let late = due + Budget.latenessMax + Interval(nanoseconds: 1)
        #expect(taken(&budget, late) == [1])
        let end = budget.end(1, now: late)
        let next = try #require(end)
        #expect(taken(&budget, next) == [2, 3, 4, 5])
    }

    @Test("when nobody waits no turn is wanted, and who comes then is never late")
    func rest() throws {
        var budget = Budget()
        let first = budget.begin(now: start)
        let due = try #require(first)
        let late = due + .seconds(1)
        #expect(taken(&budget, late).isEmpty)
        let next = budget.end(0, now: late)
        #expect(next == nil)
        let later = start + .seconds(9)
        for number in 1...Budget.startsMax {
            #expect(budget.isOpen)
            let next = budget.begin(now: later)
            #expect((next != nil) == (number == 1))
        }
        #expect(!budget.isOpen)
    }
}
