// Shows the newest page of make board: reads it again every minute.
setTimeout(() => location.reload(), 60000);
