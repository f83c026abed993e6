-- the mean speed of the cars of each segment, minute by minute
SELECT seg, count(*) AS cars, avg(speed) AS mean FROM Car GROUP BY seg, TUMBLING(1 minute);
