import Ground
import Origin
import Testing

/// Event loops that follow the admission's decisions, under random events.
private struct Loops {
    let origin = OriginAuthority(host: "a.example", port: 80)
    let loopCount = 3
    let connectionsMax: Int
    var gate: OriginAdmission
    /// The connections of each loop in use; idle ones; and the requests to close one.
    var busy: [Int]
    var idle: [Int]
    var asked: [Int]
    /// The fetches of each loop that share a connection in use.
    var joined: [Int]
    var waiting: [OriginAdmission.TransactionID] = []
    var fetches: UInt64 = 0
    var served: UInt64 = 0

    init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
        gate = OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: connectionsMax, queueMax: 20,
                circuit: CircuitLimits(failures: nil, openInterval: .seconds(1))))
        busy = Array(repeating: 0, count: loopCount)
        idle = busy
        asked = busy
        joined = busy
    }

    var open: Int { busy.reduce(0, +) + idle.reduce(0, +) }

    mutating func arrive(on loop: Int, mayJoin: Bool = false) {
        fetches += 1
        let ticket = OriginAdmission.TransactionID(loop: loop, transaction: fetches)
        let mayJoin = mayJoin && busy[loop] > 0
        switch gate.requestAdmission(ticket, at: origin, mayJoin: mayJoin, now: .zero) {
        case .join: joined[loop] += 1
        case .open: busy[loop] += 1
        case .useIdle:
            idle[loop] -= 1
            busy[loop] += 1
        case .wait(closingIdleOnLoop: let other):
            waiting.append(ticket)
            if let other { asked[other] += 1 }
        case .refused: served += 1
        }
    }

    /// Lets the first waiting fetch of `loop` join a connection.
    mutating func invite(on loop: Int) {
        guard busy[loop] > 0, let ticket = waiting.first(where: { $0.loop == loop }),
            gate.leaveQueueForShared(ticket, origin)
        else { return }
        waiting.removeAll { $0 == ticket }
        joined[loop] += 1
    }

    /// Ends a fetch on `loop`; its connection becomes idle, or is closed.
    mutating func finish(on loop: Int, isReusable: Bool) {
        guard busy[loop] > 0 else { return }
        served += 1
        guard joined[loop] == 0 else {
            joined[loop] -= 1
            return
        }
        busy[loop] -= 1
        guard isReusable else { return close() }
        switch gate.connectionReleased(origin, on: loop) {
        case .keep: idle[loop] += 1
        case .close: close()
        case .assign(let ticket):
            waiting.removeAll { $0 == ticket }
            busy[loop] += 1
        }
    }

    private mutating func close(wasAskedFor: Bool = false) {
        guard
            case .granted(let ticket, _)? = gate.connectionClosed(origin, wasRequested: wasAskedFor)
        else {
            return
        }
        waiting.removeAll { $0 == ticket }
        busy[ticket.loop] += 1
    }

    mutating func closeAsked(on loop: Int) {
        guard asked[loop] > 0 else { return }
        asked[loop] -= 1
        guard idle[loop] > 0 else { return gate.noIdleConnectionClosed(origin) }
        // Since the request it no longer counts as idle.
        idle[loop] -= 1
        close(wasAskedFor: true)
    }

    mutating func expire(on loop: Int) {
        guard idle[loop] > 0 else { return }
        idle[loop] -= 1
        gate.idleConnectionClosed(origin, on: loop)
        close()
    }

    mutating func giveUp(_ dice: inout SplitMix64) {
        guard let ticket = waiting.randomElement(using: &dice) else { return }
        gate.requestCancelled(ticket, origin)
        waiting.removeAll { $0 == ticket }
        served += 1
    }
}

@Suite("Joining a shared connection")
struct OriginGateJoinTests {
    @Test("Joining fetches overtake another loop's only a limited number of times, their own never")
    func passing() {
        let origin = OriginAuthority(host: "a.example", port: 443, isSecure: true)
        var gate = OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: 1, queueMax: 9,
                circuit: CircuitLimits(failures: nil, openInterval: .seconds(1))))
        func ticket(_ loop: Int, _ fetch: UInt64) -> OriginAdmission.TransactionID {
            OriginAdmission.TransactionID(loop: loop, transaction: fetch)
        }
        #expect(
            gate.requestAdmission(ticket(0, 1), at: origin, mayJoin: false, now: .zero) == .open)
        #expect(gate.requestAdmission(ticket(0, 2), at: origin, mayJoin: true, now: .zero) == .join)
        let other = gate.requestAdmission(ticket(1, 3), at: origin, now: .zero)
        #expect(other == .wait(closingIdleOnLoop: nil))
        for fetch in 4..<12 {
            let admission = gate.requestAdmission(
                ticket(0, UInt64(fetch)), at: origin, mayJoin: true, now: .zero)
            #expect(admission == .join)
        }
        let late = gate.requestAdmission(ticket(0, 12), at: origin, mayJoin: true, now: .zero)
        #expect(late == .wait(closingIdleOnLoop: nil))
        let isJoined = gate.leaveQueueForShared(ticket(0, 12), origin)
        #expect(!isJoined)
        // The connection becomes free, and its slot goes to the other loop.
        #expect(gate.connectionReleased(origin, on: 0) == .close)
        #expect(gate.connectionClosed(origin) == .granted(ticket(1, 3), origin))
    }
}

@Suite("Invariants of the admission")
struct OriginAdmissionModelTests {
    @Test(
        "The limit holds, no fetch waits beside a free slot, and all are served",
        arguments: 1...200)
    func laws(seed: Int) {
        var dice = SplitMix64(seed: UInt64(seed))
        var loops = Loops(connectionsMax: 1 + seed % 5)
        for _ in 1...300 {
            let loop = Int.random(in: 0..<3, using: &dice)
            switch Int.random(in: 0..<11, using: &dice) {
            case 0..<4:
                loops.arrive(on: loop, mayJoin: seed % 2 == 0 && Bool.random(using: &dice))
            case 10: if seed % 2 == 0 { loops.invite(on: loop) }
            case 4..<7: loops.finish(on: loop, isReusable: Bool.random(using: &dice))
            case 7: loops.closeAsked(on: loop)
            case 8: loops.expire(on: loop)
            default: loops.giveUp(&dice)
            }
            let status = loops.gate.statuses(now: .zero).first
            #expect(status?.connections ?? 0 == loops.open)
            #expect(loops.open <= loops.connectionsMax)
            #expect(status?.waiting ?? 0 == loops.waiting.count)
            #expect(loops.waiting.isEmpty || loops.open == loops.connectionsMax)
        }
        var rounds = 0
        while loops.served < loops.fetches, rounds < 10_000 {
            rounds += 1
            let loop = rounds % 3
            loops.closeAsked(on: loop)
            loops.finish(on: loop, isReusable: true)
        }
        #expect(loops.served == loops.fetches)
        for loop in 0..<3 { while loops.idle[loop] > 0 { loops.expire(on: loop) } }
        #expect(loops.gate.statuses(now: .zero).isEmpty)
    }
}

@Suite("Invariants of the quotas")
struct OriginGateShareTests {
    /// Three clients and their fetches on one loop.
    private struct Clients {
        let origin = OriginAuthority(host: "a.example", port: 80)
        let share = 2
        var gate = OriginAdmission(
            settings: OriginAdmission.Settings(
                connectionsMax: 4, queueMax: 20,
                circuit: CircuitLimits(failures: nil, openInterval: .seconds(1)), clientPercent: 50)
        )
        var busy: [OriginAdmission.TransactionID: Int] = [:]
        var waiting: [OriginAdmission.TransactionID: Int] = [:]
        var idle = 0
        var fetches: UInt64 = 0

        func count(of client: Int) -> Int { busy.values.count { $0 == client } }

        mutating func arrive(as client: Int) {
            fetches += 1
            let ticket = OriginAdmission.TransactionID(loop: 0, transaction: fetches)
            let holders = [QuotaHolder.client(.v4(UInt32(client)))]
            switch gate.requestAdmission(ticket, for: holders, at: origin, now: .zero) {
            case .open: busy[ticket] = client
            case .useIdle:
                idle -= 1
                busy[ticket] = client
            case .wait: waiting[ticket] = client
            case .join, .refused: break
            }
        }

        mutating func finish(_ ticket: OriginAdmission.TransactionID, isReusable: Bool) {
            busy[ticket] = nil
            let ended = gate.transactionEnded(
                ticket, origin, .succeeded, now: .zero, releases: isReusable)
            for update in ended.updates { take(update) }
            let release = isReusable ? gate.connectionReleased(origin, on: 0) : .close
            switch release {
            case .keep: idle += 1
            case .assign(let next): serve(next)
            case .close: if let news = gate.connectionClosed(origin) { take(news) }
            }
        }

        private mutating func take(_ update: OriginAdmission.Update) {
            if case .granted(let ticket, _) = update { serve(ticket) }
        }

        private mutating func serve(_ ticket: OriginAdmission.TransactionID) {
            busy[ticket] = waiting.removeValue(forKey: ticket)
        }
    }

    @Test(
        "No client exceeds its quota or waits beside a slot for it, and all are served",
        arguments: 1...200)
    func laws(seed: Int) {
        var dice = SplitMix64(seed: UInt64(seed))
        var clients = Clients()
        for _ in 1...300 {
            if Bool.random(using: &dice) {
                clients.arrive(as: Int.random(in: 0..<3, using: &dice))
            } else if let ticket = clients.busy.keys.min(by: { $0.transaction < $1.transaction }) {
                clients.finish(ticket, isReusable: Bool.random(using: &dice))
            }
            for client in 0..<3 {
                let count = clients.count(of: client)
                #expect(count <= clients.share)
                let waits = clients.waiting.values.contains(client)
                #expect(!waits || count == clients.share || clients.busy.count == 4)
            }
            #expect(clients.busy.count + clients.idle <= 4)
        }
        while let ticket = clients.busy.keys.min(by: { $0.transaction < $1.transaction }) {
            clients.finish(ticket, isReusable: true)
        }
        #expect(clients.waiting.isEmpty)
    }
}
