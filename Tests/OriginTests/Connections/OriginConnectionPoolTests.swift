import Ground
import Origin
import Testing

@Suite("The connection pool")
struct OriginConnectionPoolTests {
    let a = OriginAuthority(host: "a.example", port: 80)
    let b = OriginAuthority(host: "b.example", port: 80)

    private func pool(
        connections: Int = 100, idle: Int = 100, perOrigin: Int = 100,
        limit: Interval = .seconds(10)
    ) -> OriginConnectionPool {
        var settings = OriginSettings()
        settings.connectionsMax = connections
        settings.idleConnectionsMax = idle
        settings.idleConnectionsPerOriginMax = perOrigin
        settings.idleConnectionLimit = limit
        return OriginConnectionPool(settings: settings)
    }

    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    /// Opens a connection whose response ends at `seconds`.
    private func idle(
        _ number: UInt64, _ origin: OriginAuthority, at seconds: Int64,
        in pool: inout OriginConnectionPool
    ) -> [OriginConnectionID] {
        #expect(pool.reserveConnection() == .open)
        return pool.connectionReleased(OriginConnectionID(number), to: origin, now: at(seconds))
    }

    @Test("The most recently used connection is used next")
    func mostRecentFirst() {
        var pool = pool()
        for number in 1...3 { #expect(idle(UInt64(number), a, at: 0, in: &pool) == []) }
        #expect(pool.takeIdleConnection(to: a) == OriginConnectionID(3))
        #expect(pool.takeIdleConnection(to: a) == OriginConnectionID(2))
        #expect(pool.connectionReleased(OriginConnectionID(3), to: a, now: at(1)) == [])
        #expect(pool.takeIdleConnection(to: a) == OriginConnectionID(3))
        #expect(pool.takeIdleConnection(to: a) == OriginConnectionID(1))
        #expect(pool.takeIdleConnection(to: a) == nil)
        #expect(pool.openCount == 3 && pool.idleCount == 0)
    }

    @Test("A connection is used only for the host and port to which it was opened")
    func perOrigin() {
        var pool = pool()
        #expect(idle(1, a, at: 0, in: &pool) == [])
        #expect(pool.takeIdleConnection(to: b) == nil)
        #expect(pool.takeIdleConnection(to: OriginAuthority(host: a.host, port: 81)) == nil)
        #expect(pool.takeIdleConnection(to: a) == OriginConnectionID(1))
    }

    @Test("At the limit on idle connections to an origin, the oldest of them is closed")
    func idlePerOriginMax() {
        var pool = pool(perOrigin: 2)
        #expect(idle(1, b, at: 0, in: &pool) == [])
        #expect(idle(2, a, at: 1, in: &pool) == [])
        #expect(idle(3, a, at: 2, in: &pool) == [])
        #expect(idle(4, a, at: 3, in: &pool) == [OriginConnectionID(2)])
        #expect(pool.idleCount == 3)
    }

    @Test("At the limit on all idle connections, the oldest of all is closed")
    func idleMax() {
        var pool = pool(idle: 2)
        #expect(idle(1, b, at: 0, in: &pool) == [])
        #expect(idle(2, a, at: 1, in: &pool) == [])
        #expect(idle(3, a, at: 2, in: &pool) == [OriginConnectionID(1)])
        #expect(pool.takeIdleConnection(to: b) == nil)
    }

    @Test("With no idle connections allowed, a released one is closed")
    func idleNone() {
        var pool = pool(idle: 0)
        #expect(idle(1, a, at: 0, in: &pool) == [OriginConnectionID(1)])
        #expect(pool.idleCount == 0)
    }

    @Test("With an idle limit of zero, a released connection is closed")
    func idleForNoTime() {
        var pool = pool(limit: .zero)
        #expect(idle(1, a, at: 0, in: &pool) == [OriginConnectionID(1)])
        #expect(pool.takeIdleConnection(to: a) == nil)
        #expect(pool.idleCount == 0 && pool.deadline == nil)
    }

    @Test("A connection is closed when it was idle for the limit, and not before")
    func idleLimit() {
        var pool = pool()
        #expect(pool.deadline == nil)
        _ = idle(1, a, at: 0, in: &pool)
        _ = idle(2, b, at: 3, in: &pool)
        #expect(pool.deadline == at(10))
        #expect(pool.removeExpired(now: at(9)) == [])
        #expect(pool.removeExpired(now: at(10)) == [OriginConnectionID(1)])
        #expect(pool.deadline == at(13))
        #expect(pool.removeExpired(now: at(99)) == [OriginConnectionID(2)])
        #expect(pool.deadline == nil)
        #expect(pool.openCount == 2, "they count as open until their close is reported")
    }

    @Test("A connection that the origin closed is not reused")
    func originCloses() {
        var pool = pool()
        _ = idle(1, a, at: 0, in: &pool)
        pool.connectionClosed(OriginConnectionID(1))
        #expect(pool.takeIdleConnection(to: a) == nil)
        #expect(pool.openCount == 0 && pool.idleCount == 0 && pool.deadline == nil)
    }

    @Test("At the limit an idle connection is replaced; without one, opening is refused")
    func connectionsMax() {
        var pool = pool(connections: 2)
        _ = idle(1, a, at: 0, in: &pool)
        #expect(pool.reserveConnection() == .open)
        #expect(pool.reserveConnection() == .replace(OriginConnectionID(1)))
        pool.connectionClosed(OriginConnectionID(1))
        #expect(pool.reserveConnection() == .refuse)
        pool.connectionClosed(OriginConnectionID(2))
        #expect(pool.reserveConnection() == .open)
    }

    @Test("Draining returns every idle connection once")
    func drained() {
        var pool = pool()
        _ = idle(2, a, at: 0, in: &pool)
        _ = idle(1, b, at: 0, in: &pool)
        #expect(pool.removeAllIdle() == [OriginConnectionID(1), OriginConnectionID(2)])
        #expect(pool.removeAllIdle() == [])
        #expect(pool.takeIdleConnection(to: a) == nil)
    }
}
