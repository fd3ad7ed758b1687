import Cluster
import Ground
import NIOCore
import Serving
import Synchronization
import Telemetry
import Wire

/// What other loops want of a connection.
extension PeerConnection {
    /// Sends gossip behind what was sent before.
    func say(_ gossip: Gossip) {
        onLoop { connection in
            // Who reads so slowly that it is refused is found silent by its pings.
            try? connection.link.send(gossip)
            connection.flush()
        }
    }

    /// Says something about invalidations behind what was sent before, and before any later
    /// question.
    func say(_ message: InvalidationMessage) {
        onLoop { connection in
            // What cannot be said is asked for again, by those who miss it.
            try? connection.link.send(message)
            connection.flushSoon()
        }
    }

    /// Sends touches behind what was sent before.
    func say(_ touches: [AgedTouch]) {
        onLoop { connection in
            do throws(SendRefusal) {
                try connection.link.send(touches: touches)
                connection.hub.counters.add(.touchesSent, touches.count)
            } catch {
                connection.hub.counters.add(.touchesLost, touches.count)
            }
            connection.flush()
        }
    }

    /// Offers entries behind what was sent before; `refused` is told if there is no room for that
    /// now, or no connection.
    func say(_ offers: [PeerOffer], refused: @escaping @Sendable () -> Void) {
        guard loop != nil else { return refused() }
        onLoop { connection in
            do throws(SendRefusal) {
                try connection.link.send(offers: offers)
                connection.hub.counters.add(.offersMade, offers.count)
            } catch {
                refused()
            }
            connection.flush()
        }
    }

    /// Answers offers behind what was sent before.
    func say(_ verdicts: [OfferVerdict]) {
        onLoop { connection in
            // Who does not hear of it makes the offer again.
            for start in stride(from: 0, to: verdicts.count, by: PeerProtocol.offersMax) {
                let end = min(start + PeerProtocol.offersMax, verdicts.count)
                try? connection.link.send(verdicts: Array(verdicts[start..<end]))
            }
            connection.flush()
        }
    }

    /// Ends the connection with a reason.
    func end(_ goodbye: Goodbye) {
        onLoop { connection in
            connection.link.close(goodbye)
            connection.flush()
        }
    }

    /// Puts a question; its answer is told to it.
    func ask(_ ask: PeerAsk) {
        onLoop { connection in
            var question = ask.question
            guard connection.informs(ask.node, with: &question) else { return ask.tell(.lost) }
            do throws(SendRefusal) {
                let stream = try connection.link.ask(question)
                ask.stream = stream
                ask.askedAt = SystemClock.now()
                connection.asks[stream] = ask
                if connection.link.isWearingOut { connection.hub.wearsOut(connection.id) }
            } catch {
                if error == .wornOut {
                    // None has taken its place; without it one is dialled as after a break.
                    let text = "it has no numbers left"
                    connection.link.close(Goodbye(.superseded, text))
                    connection.flushSoon()
                }
                return ask.tell(error == .notOpen ? .lost : .refused)
            }
            connection.flushSoon()
        }
    }

    /// Puts into a question what the peer has to know first; false if nothing may be asked here,
    /// because this node speaks with it on another connection by now.
    private func informs(_ peer: NodeID, with question: inout PeerQuestion) -> Bool {
        guard let desk = hall?.desk else { return false }
        let count = desk.appliedCount
        if count == toldCount { return true }
        guard desk.prepare(&question, for: peer, on: self) else { return false }
        toldCount = count
        return true
    }

    /// Nothing more of the answer is wanted.
    func cancel(_ ask: PeerAsk) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.noteSilence(after: ask)
            ask.stream = nil
            connection.asks[stream] = nil
            connection.link.cancel(stream)
            connection.flushSoon()
        }
    }

    /// Whoever gives `ask` up has perhaps waited for nothing.
    private func noteSilence(after ask: PeerAsk) {
        let hasWaited = SystemClock.now() - ask.askedAt >= OwnerSearch.silence
        guard hasWaited, heardAt < ask.askedAt else { return }
        isSilent.store(true, ordering: .relaxed)
    }

    /// So many bytes of the answer are out of the way.
    func take(_ bytesCount: Int, of ask: PeerAsk) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.link.taken(bytesCount, on: stream)
            connection.flushSoon()
        }
    }

    /// The peer is suspected: nobody waits for it any more who has nothing of it.
    func suspect() {
        onLoop { connection in
            for stream in connection.asks.keys.sorted() {
                guard let ask = connection.asks[stream], !ask.hasHead else { continue }
                connection.end(ask, .lost)
                connection.link.cancel(stream)
            }
            connection.flush()
        }
    }

    /// Nothing more is said on a stream of the peer's.
    func answered(_ stream: UInt32) {
        answerings[stream] = nil
    }
}
